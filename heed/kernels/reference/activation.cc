// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/activation.h"

#include <cassert>
#include <cmath>
#include <numbers>

namespace heed::kernels::reference {
namespace {

using std::numbers::inv_sqrtpi, std::numbers::sqrt2;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// The normal distribution: Phi and its derivative. erfc keeps the digits of a small Phi.
double normal_below(double x) { return std::erfc(-x / sqrt2) / 2; }
double normal_density(double x) { return inv_sqrtpi / sqrt2 * std::exp(-x * x / 2); }

// gelu_tanh is x times this, which is (1 + tanh(z)) / 2, z = sqrt(2/pi) (x + 0.044715 x^3).
constexpr double kCubic = 0.044715;
const double kTwiceRoot = 2 * sqrt2 * inv_sqrtpi;
double tanh_gate(double x) { return sigmoid(kTwiceRoot * (x + kCubic * x * x * x)); }

}  // namespace

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x <= 0 ? 0 : x;
    case Activation::gelu:
      return x * normal_below(x);
    case Activation::gelu_tanh:
      return x * tanh_gate(x);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return sigmoid(x);
  }
  return x;
}

// With s = sigmoid(u), ds/du = s (1 - s), and 1 - s(u) = s(-u).
double slope(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return 1;
    case Activation::relu:
      return std::isnan(x) ? x : x > 0;
    case Activation::gelu:
      return normal_below(x) + x * normal_density(x);
    case Activation::gelu_tanh:
      return tanh_gate(x) * (1 + x * tanh_gate(-x) * kTwiceRoot * (1 + 3 * kCubic * x * x));
    case Activation::silu:
      return sigmoid(x) * (1 + x * sigmoid(-x));
    case Activation::tanh:
      return 4 * sigmoid(2 * x) * sigmoid(-2 * x);  // 1 - tanh(x)^2
    case Activation::sigmoid:
      return sigmoid(x) * sigmoid(-x);
  }
  return 1;
}

void activation_forward(Activation activation, View<const double, 2> x, View<double, 2> y) {
  assert(x.shape() == y.shape());
  for (int64_t r = 0; r < x.shape(0); ++r) {
    for (int64_t c = 0; c < x.shape(1); ++c) y(r, c) = activate(activation, x(r, c));
  }
}

void activation_backward(Activation activation, View<const double, 2> x, View<const double, 2> dy, View<double, 2> dx) {
  assert(x.shape() == dy.shape() && x.shape() == dx.shape());
  for (int64_t r = 0; r < x.shape(0); ++r) {
    for (int64_t c = 0; c < x.shape(1); ++c) dx(r, c) += dy(r, c) * slope(activation, x(r, c));
  }
}

}  // namespace heed::kernels::reference
