// SPDX-License-Identifier: Apache-2.0
#pragma once
// How work over rows is divided into tasks: by shape alone, never by the number of threads. Internal to the kernels.
#include <algorithm>
#include <cstdint>

#include "heed/base/parallel.h"
#include "heed/base/view.h"

namespace heed::kernels {

// Elements of a task: enough to amortise starting it, few enough to stay in L2.
constexpr int64_t kTaskElements = 1 << 14;

// body(begin, end) for runs of whole rows.
template <class Body>
void for_rows(const Dims<2>& shape, Parallel& parallel, const Body& body) noexcept {
  const int64_t step = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, shape[1]));
  parallel.for_each((shape[0] + step - 1) / step,
                    [&](int64_t task, int) { body(task * step, std::min(shape[0], (task + 1) * step)); });
}

// body(row) for every row, in such runs.
template <class Body>
void for_each_row(const Dims<2>& shape, Parallel& parallel, const Body& body) noexcept {
  for_rows(shape, parallel, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

// body(row, column, columns) for parts of rows that cover everything: whole rows, several to a task or, of wide ones,
// pieces.
template <class Body>
void for_row_parts(const Dims<2>& shape, Parallel& parallel, const Body& body) noexcept {
  const int64_t pieces = (shape[1] + kTaskElements - 1) / kTaskElements;
  if (pieces <= 1) return for_each_row(shape, parallel, [&](int64_t r) { body(r, int64_t{0}, shape[1]); });
  parallel.for_each(shape[0] * pieces, [&](int64_t task, int) {
    const int64_t column = task % pieces * kTaskElements;
    body(task / pieces, column, std::min(kTaskElements, shape[1] - column));
  });
}

// Whether the elements lie without a gap; an empty view does.
template <class T>
bool is_flat(const View<T, 2>& view) {
  return view.empty() || view.shape(0) <= 1 || view.stride(0) == view.shape(1);
}

// The same elements as one row, of a view that is_flat.
template <class T>
View<T, 2> flattened(const View<T, 2>& view) {
  return {view.data(), {1, view.size()}};
}

}  // namespace heed::kernels
