// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of the views that a plan is given: messages name the argument, what came, what was expected. Internal.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "heed/base/error.h"
#include "heed/base/view.h"

namespace heed::kernels {

[[noreturn]] inline void fail(const std::string& text) { throw Error("attention: " + text); }

template <size_t Rank>
void check_exact(const char* name, const Dims<Rank>& shape, const Dims<Rank>& expected) {
  if (shape != expected)
    fail(std::string(name) + " has shape " + to_string(shape) + ", expected " + to_string(expected));
}

template <class ViewLike>
void check_readable(const char* name, const ViewLike& view) {
  if (view.empty() && element_count(view.shape()) > 0) fail(std::string(name) + " is an empty view");
  const size_t last = view.shape().size() - 1;
  if (view.shape()[last] > 1 && view.strides()[last] != 1) {
    fail(std::string(name) + " has strides " + to_string(view.strides()) + ", expected a last stride of 1");
  }
}

// An output's elements must not overlap: taking the dimensions by rising stride, each must step over all that the ones
// before it reach.
template <class T, size_t Rank>
void check_writable(const char* name, const View<T, Rank>& view) {
  if (element_count(view.shape()) == 0) return;
  std::array<size_t, Rank> order;
  for (size_t i = 0; i < Rank; ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return std::abs(view.stride(i)) < std::abs(view.stride(j)); });
  int64_t reach = 1;
  for (size_t i : order) {
    if (view.shape(i) == 1) continue;
    if (std::abs(view.stride(i)) < reach) {
      fail(std::string(name) + " has shape " + to_string(view.shape()) + " and strides " + to_string(view.strides()) +
           ", expected strides that keep its elements apart");
    }
    reach += (view.shape(i) - 1) * std::abs(view.stride(i));
  }
}

template <class T, size_t Rank>
void check_output(const char* name, const View<T, Rank>& view, const Dims<Rank>& shape) {
  check_exact(name, view.shape(), shape);
  check_readable(name, view);
  check_writable(name, view);
}

}  // namespace heed::kernels
