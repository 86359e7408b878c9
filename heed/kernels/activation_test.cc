// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/activation.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

constexpr Activation kAll[] = {Activation::none, Activation::relu, Activation::gelu,   Activation::gelu_tanh,
                               Activation::silu, Activation::tanh, Activation::sigmoid};

// How wrong act(x) and act'(x) may be. e^x is right to 4 u of itself, so that sigmoid(x), with an addition, a division
// and a product, is to 10 u. tanh is right to 6 u.
//
// Phi(-|x|) is e^(-x^2/2) t P(q): rounding x^2 costs x^2/2 u; e^x 4 u; t 2 u; q = 1 - 2Kt is within 5 u, and P's
// logarithmic slope is below 1; P's Horner scheme costs 3 u, its fit 2 u, the products 2 u: below (x^2/2 + 20) u.
//
// gelu_tanh's gate is sigmoid(u): u is right to 7 u of itself, which moves the logarithm of the gate by 7 u |u|.
struct Bounds {
  double value, slope;
};

double sigmoid(double u) { return 1 / (1 + std::exp(-u)); }

// y = x s(u), slope = s(u) (1 + A), A = x s(-u) u', where s and A are relatively right to `gate` and `term` roundings,
// and either s may be too small for f32.
Bounds gated(double x, double u, double du, double gate, double term) {
  const double s = sigmoid(u), A = std::abs(x * sigmoid(-u) * du);
  return {std::abs(x) * (s * (gate + 1) * kUnit + kTiny),
          kUnit * s * (term * A + (gate + 2) * (1 + A)) + kTiny * (1 + std::abs(x) * du)};
}

Bounds bounds(Activation activation, double x) {
  const double size = std::abs(x);
  switch (activation) {
    case Activation::none:
    case Activation::relu:
      return {0, 0};
    case Activation::gelu: {
      const double below = std::erfc(-x / std::numbers::sqrt2) / 2, tail = std::min(below, 1 - below);
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      const double error = kUnit * ((x * x / 2 + 20) * tail + below) + kTiny;
      const double sum = kUnit * ((x * x / 2 + 8) * size * density + below + size * density);
      return {size * error + kUnit * size * below, error + sum + size * kTiny};
    }
    case Activation::gelu_tanh: {
      const double root = 2 * std::sqrt(2 / std::numbers::pi), u = root * (x + 0.044715 * x * x * x);
      const double du = root * (1 + 3 * 0.044715 * x * x);
      return gated(x, u, du, 10 + 7 * std::abs(u), 18 + 7 * std::abs(u));
    }
    case Activation::silu:
      return gated(x, x, 1, 10, 13);
    case Activation::tanh:
      return {6 * kUnit * std::abs(std::tanh(x)), 22 * kUnit * 4 * sigmoid(2 * x) * sigmoid(-2 * x) + 4 * kTiny};
    case Activation::sigmoid:
      return {10 * kUnit * sigmoid(x) + kTiny, 22 * kUnit * sigmoid(x) * sigmoid(-x) + kTiny};
  }
  return {};
}

// Small, moderate and large, of both signs.
float draw_argument(Rng& rng) {
  const float scale[] = {1e-4f, 0.3f, 1, 4, 12, 100};
  return scale[rng.below(6)] * rng.normal();
}

TEST(Activation, IsNearTheTwin) {
  for_draws(60, [](Rng& rng) {
    const Activation activation = kAll[rng.below(std::size(kAll))];
    SCOPED_TRACE(name_of(activation));
    const int64_t rows = draw_rows(rng), width = draw_width(rng);
    Rows x = Rows::normal(rows, width, rng), dx = Rows::normal(rows, width, rng), y = dx;
    const Rows dy = Rows::normal(rows, width, rng);
    x.for_each([&](float& v) { v = draw_argument(rng); });

    std::vector<double> x64 = x.doubles(), dy64 = dy.doubles(), dx64 = dx.doubles(), y64(x64.size());
    const std::vector<double> dx0 = dx64;
    reference::activation_forward(activation, matrix(x64, rows, width), matrix(y64, rows, width));
    reference::activation_backward(activation, matrix(x64, rows, width), matrix(dy64, rows, width),
                                   matrix(dx64, rows, width));
    std::vector<double> y_bound, dx_bound;
    for (size_t i = 0; i < x64.size(); ++i) {
      const auto [value, slope] = bounds(activation, x64[i]);
      const double product = std::abs(dx64[i] - dx0[i]);
      y_bound.push_back(value);
      dx_bound.push_back(std::abs(dy64[i]) * slope * (1 + 2 * kUnit) + 2 * kUnit * (product + std::abs(dx0[i])));
    }
    for_targets([&] {
      Parallel parallel(2);
      Rows got = y, got_dx = dx;
      activation_forward(activation, x.view(), got.view(), parallel);
      activation_backward(activation, x.view(), dy.view(), got_dx.view(), parallel);
      EXPECT_TRUE(within(got.floats(), y64, y_bound)) << "y";
      EXPECT_TRUE(within(got_dx.floats(), dx64, dx_bound)) << "dx";
      EXPECT_TRUE(got.guards_are_whole() && got_dx.guards_are_whole());
    });
  });
}

// All magnitudes, from the smallest normal numbers on.
TEST(Activation, IsNearTheTwinEverywhere) {
  std::vector<float> x;
  for (float size = 0x1p-126f; size < 1e30f; size *= 1.0037f) x.push_back(size), x.push_back(-size);
  const std::vector<float> one(x.size(), 1.0f);
  for (const Activation activation : kAll) {
    SCOPED_TRACE(name_of(activation));
    std::vector<double> value, slope, value_bound, slope_bound;
    for (const float v : x) {
      value.push_back(reference::activate(activation, v));
      slope.push_back(reference::slope(activation, v));
      const Bounds bound = bounds(activation, v);
      value_bound.push_back(bound.value + kTiny);
      slope_bound.push_back(bound.slope);
    }
    for_targets([&] {
      std::vector<float> got(x.size());
      activate(activation, x, got);
      EXPECT_TRUE(within(got, value, value_bound)) << "value";
      activation_slope(activation, x, one, got);
      EXPECT_TRUE(within(got, slope, slope_bound)) << "slope";
    });
  }
}

TEST(Activation, WorksInPlace) {
  Rng rng(seeded(1));
  for (const Activation activation : kAll) {
    for (const int64_t n : {0, 1, 7, 8, 9, 33, 100}) {
      const std::vector<float> x = normals(n, rng), dy = normals(n, rng);
      for_targets([&] {
        std::vector<float> y(x.size()), dx(x.size()), in_place = x, d_in_place = dy;
        activate(activation, x, y);
        activate(activation, in_place, in_place);
        EXPECT_TRUE(same_bits(in_place, y));
        activation_slope(activation, x, dy, dx);
        activation_slope(activation, x, d_in_place, d_in_place);
        EXPECT_TRUE(same_bits(d_in_place, dx));
      });
    }
  }
}

TEST(Activation, NaNShowsAndStaysWhereItIs) {
  for (const Activation activation : kAll) {
    SCOPED_TRACE(name_of(activation));
    for_targets([&] {
      for (const size_t at : {size_t{0}, size_t{5}, size_t{36}}) {
        std::vector<float> x(37, 0.5f), y(37), dx(37);
        const std::vector<float> dy(37, 1.0f);
        x[at] = kNaN;
        activate(activation, x, y);
        activation_slope(activation, x, dy, dx);
        for (size_t i = 0; i < 37; ++i) {
          EXPECT_EQ(std::isnan(y[i]), i == at) << i;
          EXPECT_EQ(std::isnan(dx[i]), i == at && activation != Activation::none) << i;
        }
      }
    });
  }
}

TEST(Activation, LimitsAreExact) {
  for_targets([&] {
    const auto at = [](Activation activation, float x) {
      float y = 0;
      activate(activation, std::span(&x, 1), std::span(&y, 1));
      return y;
    };
    for (const float large : {100.0f, kInfinity}) {
      EXPECT_EQ(at(Activation::relu, large), large);
      EXPECT_EQ(at(Activation::relu, -large), 0);
      EXPECT_EQ(at(Activation::gelu, large), large);
      EXPECT_EQ(at(Activation::gelu_tanh, large), large);
      EXPECT_EQ(at(Activation::silu, large), large);
      EXPECT_EQ(at(Activation::tanh, large), 1);
      EXPECT_EQ(at(Activation::tanh, -large), -1);
      EXPECT_EQ(at(Activation::sigmoid, large), 1);
      EXPECT_EQ(at(Activation::sigmoid, -large), 0);
    }
    for (const Activation activation : kAll) {
      EXPECT_EQ(at(activation, 0), activation == Activation::sigmoid ? 0.5f : 0.0f) << name_of(activation);
    }
  });
}

TEST(Activation, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(2));
  for (const int64_t gap : {0, 3}) {
    Rows x(150, 301, gap), dy = x;
    x.for_each([&](float& v) { v = rng.normal(); });
    dy.for_each([&](float& v) { v = rng.normal(); });
    for (const Activation activation : kAll) {
      expect_same_on_threads([&](Parallel& parallel) {
        Rows y = dy, dx = dy;
        activation_forward(activation, x.view(), y.view(), parallel);
        activation_backward(activation, x.view(), dy.view(), dx.view(), parallel);
        std::vector<float> all = y.floats();
        const std::vector<float> more = dx.floats();
        all.insert(all.end(), more.begin(), more.end());
        return all;
      });
    }
  }
}

}  // namespace
}  // namespace heed::kernels
