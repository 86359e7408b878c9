// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/elementwise.h"

#include <cassert>

namespace heed::kernels::reference {
namespace {

void for_each_index(const Dims<2>& shape, const auto& body) {
  for (int64_t r = 0; r < shape[0]; ++r) {
    for (int64_t c = 0; c < shape[1]; ++c) body(r, c);
  }
}

}  // namespace

void add_forward(View<const double, 2> a, View<const double, 2> b, View<double, 2> y) {
  assert(a.shape() == b.shape() && a.shape() == y.shape());
  for_each_index(y.shape(), [&](int64_t r, int64_t c) { y(r, c) = a(r, c) + b(r, c); });
}

void add_backward(View<const double, 2> dy, View<double, 2> da, View<double, 2> db) {
  if (da) copy_backward(dy, da);
  if (db) copy_backward(dy, db);
}

void multiply_forward(View<const double, 2> a, View<const double, 2> b, View<double, 2> y) {
  assert(a.shape() == b.shape() && a.shape() == y.shape());
  for_each_index(y.shape(), [&](int64_t r, int64_t c) { y(r, c) = a(r, c) * b(r, c); });
}

void multiply_backward(View<const double, 2> b, View<const double, 2> dy, View<double, 2> da) {
  assert(b.shape() == dy.shape() && b.shape() == da.shape());
  for_each_index(dy.shape(), [&](int64_t r, int64_t c) { da(r, c) += dy(r, c) * b(r, c); });
}

void add_row_forward(View<const double, 2> x, View<const double, 1> row, View<double, 2> y) {
  assert(x.shape() == y.shape() && row.shape(0) == x.shape(1));
  for_each_index(y.shape(), [&](int64_t r, int64_t c) { y(r, c) = x(r, c) + row(c); });
}

void add_row_backward(View<const double, 2> dy, View<double, 2> dx, View<double, 1> drow) {
  if (dx) copy_backward(dy, dx);
  if (drow) for_each_index(dy.shape(), [&](int64_t r, int64_t c) { drow(c) += dy(r, c); });
}

void scale_forward(View<const double, 2> x, double factor, View<double, 2> y) {
  assert(x.shape() == y.shape());
  for_each_index(y.shape(), [&](int64_t r, int64_t c) { y(r, c) = factor * x(r, c); });
}

void scale_backward(View<const double, 2> dy, double factor, View<double, 2> dx) {
  assert(dy.shape() == dx.shape());
  for_each_index(dy.shape(), [&](int64_t r, int64_t c) { dx(r, c) += factor * dy(r, c); });
}

void copy_forward(View<const double, 2> x, View<double, 2> y) { scale_forward(x, 1, y); }

void copy_backward(View<const double, 2> dy, View<double, 2> dx) { scale_backward(dy, 1, dx); }

}  // namespace heed::kernels::reference
