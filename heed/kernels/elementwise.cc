// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/elementwise.h"

#include <algorithm>
#include <cassert>

#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/elementwise.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// y = op(a, b).
template <class Op>
HWY_INLINE void map_span(const float* a, const float* b, float* y, int64_t n, const Op& op) {
  const F d;
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N], w[N];
    load_vectors(d, a + at, left, v);
    load_vectors(d, b + at, left, w);
    for (int i = 0; i < N; ++i) v[i] = op(v[i], w[i]);
    store_vectors(d, v, y + at, left);
  });
}

void add_span(const float* a, const float* b, float* y, int64_t n) {
  map_span(a, b, y, n, [](V v, V w) HEED_INLINED { return hn::Add(v, w); });
}

void multiply_span(const float* a, const float* b, float* y, int64_t n) {
  map_span(a, b, y, n, [](V v, V w) HEED_INLINED { return hn::Mul(v, w); });
}

void add_product_span(const float* a, const float* b, float* y, int64_t n) {
  const F d;
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N], w[N], sum[N];
    load_vectors(d, a + at, left, v);
    load_vectors(d, b + at, left, w);
    load_vectors(d, y + at, left, sum);
    for (int i = 0; i < N; ++i) sum[i] = hn::MulAdd(v[i], w[i], sum[i]);
    store_vectors(d, sum, y + at, left);
  });
}

void scale_span(const float* x, float factor, float* y, int64_t n) { scale_row(F(), x, factor, y, n); }

void add_scaled_span(const float* x, float factor, float* y, int64_t n) { add_scaled_row(F(), x, factor, y, n); }

// to += the sum of rows of `columns` columns: four at a time, which are added to each other first.
void sum_rows_block(View<const float, 2> x, int64_t column, int64_t columns, float* to) {
  const F d;
  for (int64_t r = 0; r < x.shape(0); r += 4) {
    const int64_t rows = std::min<int64_t>(4, x.shape(0) - r);
    const float* from[4];
    for (int64_t i = 0; i < 4; ++i) from[i] = x.at(std::min(r + i, x.shape(0) - 1), column);
    for_vectors(columns, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
      V sum[N], v[N], w[N];
      load_vectors(d, to + at, left, sum);
      if (rows == 4) {
        V more[N], last[N];
        load_vectors(d, from[0] + at, left, v);
        load_vectors(d, from[1] + at, left, w);
        load_vectors(d, from[2] + at, left, more);
        load_vectors(d, from[3] + at, left, last);
        for (int i = 0; i < N; ++i) v[i] = hn::Add(hn::Add(v[i], w[i]), hn::Add(more[i], last[i]));
        for (int i = 0; i < N; ++i) sum[i] = hn::Add(sum[i], v[i]);
      } else {
        for (int64_t row = 0; row < rows; ++row) {
          load_vectors(d, from[row] + at, left, v);
          for (int i = 0; i < N; ++i) sum[i] = hn::Add(sum[i], v[i]);
        }
      }
      store_vectors(d, sum, to + at, left);
    });
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(add_span);
HWY_EXPORT(multiply_span);
HWY_EXPORT(add_product_span);
HWY_EXPORT(scale_span);
HWY_EXPORT(add_scaled_span);
HWY_EXPORT(sum_rows_block);

void add_forward(View<const float, 2> a, View<const float, 2> b, View<float, 2> y, Parallel& parallel) noexcept {
  assert(a.shape() == b.shape() && a.shape() == y.shape());
  if (is_flat(a) && is_flat(b) && is_flat(y)) a = flattened(a), b = flattened(b), y = flattened(y);
  for_row_parts(y.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(add_span)(a.at(r, c), b.at(r, c), y.at(r, c), n);
  });
}

void add_backward(View<const float, 2> dy, View<float, 2> da, View<float, 2> db, Parallel& parallel) noexcept {
  if (da) copy_backward(dy, da, parallel);
  if (db) copy_backward(dy, db, parallel);
}

void multiply_forward(View<const float, 2> a, View<const float, 2> b, View<float, 2> y, Parallel& parallel) noexcept {
  assert(a.shape() == b.shape() && a.shape() == y.shape());
  if (is_flat(a) && is_flat(b) && is_flat(y)) a = flattened(a), b = flattened(b), y = flattened(y);
  for_row_parts(y.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(multiply_span)(a.at(r, c), b.at(r, c), y.at(r, c), n);
  });
}

void multiply_backward(View<const float, 2> b, View<const float, 2> dy, View<float, 2> da,
                       Parallel& parallel) noexcept {
  assert(b.shape() == dy.shape() && b.shape() == da.shape());
  if (is_flat(b) && is_flat(dy) && is_flat(da)) b = flattened(b), dy = flattened(dy), da = flattened(da);
  for_row_parts(da.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(add_product_span)(dy.at(r, c), b.at(r, c), da.at(r, c), n);
  });
}

void add_row_forward(View<const float, 2> x, View<const float, 1> row, View<float, 2> y, Parallel& parallel) noexcept {
  assert(x.shape() == y.shape() && x.shape(1) == row.shape(0));
  for_row_parts(y.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(add_span)(x.at(r, c), row.at(c), y.at(r, c), n);
  });
}

void add_row_backward(View<const float, 2> dy, View<float, 2> dx, View<float, 1> drow, Parallel& parallel) noexcept {
  if (dx) copy_backward(dy, dx, parallel);
  if (!drow) return;
  // By columns, so that every sum has one order; a kilobyte of each row, so that reading is fast.
  assert(drow.shape(0) == dy.shape(1));
  constexpr int64_t kColumns = 256;
  const int64_t width = dy.shape(1);
  parallel.for_each((width + kColumns - 1) / kColumns, [&](int64_t task, int) {
    const int64_t c = task * kColumns;
    HWY_DYNAMIC_DISPATCH(sum_rows_block)(dy, c, std::min(kColumns, width - c), drow.at(c));
  });
}

void scale_forward(View<const float, 2> x, double factor, View<float, 2> y, Parallel& parallel) noexcept {
  assert(x.shape() == y.shape());
  if (is_flat(x) && is_flat(y)) x = flattened(x), y = flattened(y);
  for_row_parts(y.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(scale_span)(x.at(r, c), static_cast<float>(factor), y.at(r, c), n);
  });
}

void scale_backward(View<const float, 2> dy, double factor, View<float, 2> dx, Parallel& parallel) noexcept {
  assert(dy.shape() == dx.shape());
  if (is_flat(dy) && is_flat(dx)) dy = flattened(dy), dx = flattened(dx);
  for_row_parts(dx.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) {
    HWY_DYNAMIC_DISPATCH(add_scaled_span)(dy.at(r, c), static_cast<float>(factor), dx.at(r, c), n);
  });
}

void copy_forward(View<const float, 2> x, View<float, 2> y, Parallel& parallel) noexcept {
  assert(x.shape() == y.shape());
  if (is_flat(x) && is_flat(y)) x = flattened(x), y = flattened(y);
  for_row_parts(y.shape(), parallel, [&](int64_t r, int64_t c, int64_t n) { std::copy_n(x.at(r, c), n, y.at(r, c)); });
}

void copy_backward(View<const float, 2> dy, View<float, 2> dx, Parallel& parallel) noexcept {
  scale_backward(dy, 1, dx, parallel);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
