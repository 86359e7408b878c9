// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace heed::kernels::reference {
namespace {

// Subtracted from every x, it changes nothing and keeps exp in range.
double largest_of_row(const View<const double, 2>& x, int64_t r) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t c = 0; c < x.shape(1); ++c) largest = std::max(largest, x(r, c));
  return largest;
}

double sum_of_exponentials(const View<const double, 2>& x, int64_t r, double largest) {
  double sum = 0;
  for (int64_t c = 0; c < x.shape(1); ++c) sum += std::exp(x(r, c) - largest);
  return sum;
}

}  // namespace

void softmax_forward(View<const double, 2> x, View<double, 2> y) {
  assert(x.shape() == y.shape());
  for (int64_t r = 0; r < x.shape(0); ++r) {
    const double largest = largest_of_row(x, r), sum = sum_of_exponentials(x, r, largest);
    for (int64_t c = 0; c < x.shape(1); ++c) y(r, c) = std::exp(x(r, c) - largest) / sum;
  }
}

void softmax_backward(View<const double, 2> y, View<const double, 2> dy, View<double, 2> dx) {
  assert(y.shape() == dy.shape() && y.shape() == dx.shape());
  for (int64_t r = 0; r < y.shape(0); ++r) {
    double dot = 0;
    for (int64_t c = 0; c < y.shape(1); ++c) dot += dy(r, c) * y(r, c);
    for (int64_t c = 0; c < y.shape(1); ++c) dx(r, c) += y(r, c) * (dy(r, c) - dot);
  }
}

void log_softmax_forward(View<const double, 2> x, View<double, 2> y) {
  assert(x.shape() == y.shape());
  for (int64_t r = 0; r < x.shape(0); ++r) {
    const double largest = largest_of_row(x, r), log_sum = std::log(sum_of_exponentials(x, r, largest));
    for (int64_t c = 0; c < x.shape(1); ++c) y(r, c) = x(r, c) - largest - log_sum;
  }
}

void log_softmax_backward(View<const double, 2> y, View<const double, 2> dy, View<double, 2> dx) {
  assert(y.shape() == dy.shape() && y.shape() == dx.shape());
  for (int64_t r = 0; r < y.shape(0); ++r) {
    double sum = 0;
    for (int64_t c = 0; c < y.shape(1); ++c) sum += dy(r, c);
    for (int64_t c = 0; c < y.shape(1); ++c) dx(r, c) += dy(r, c) - std::exp(y(r, c)) * sum;
  }
}

}  // namespace heed::kernels::reference
