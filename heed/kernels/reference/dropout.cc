// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/dropout.h"

#include <cassert>

namespace heed::kernels::reference {
namespace {

// What an element is multiplied by.
double factor(const ElementDropout& dropout, int64_t index) {
  if (!dropout.on()) return 1;
  return dropout.keeps(index) ? 65536.0 / (65536 - dropout.threshold()) : 0;
}

}  // namespace

void dropout_forward(const ElementDropout& dropout, View<const double, 1> x, View<const double, 1> residual,
                     View<double, 1> y) {
  assert(x.shape() == y.shape() && (!residual || residual.shape() == x.shape()));
  for (int64_t i = 0; i < x.shape(0); ++i) {
    const double kept = factor(dropout, i) == 0 ? 0 : x(i) * factor(dropout, i);
    y(i) = residual ? residual(i) + kept : kept;
  }
}

void dropout_backward(const ElementDropout& dropout, View<const double, 1> dy, View<double, 1> dx) {
  assert(dy.shape() == dx.shape());
  for (int64_t i = 0; i < dy.shape(0); ++i) {
    if (factor(dropout, i) != 0) dx(i) += dy(i) * factor(dropout, i);
  }
}

}  // namespace heed::kernels::reference
