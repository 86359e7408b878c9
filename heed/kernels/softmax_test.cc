// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/softmax.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

// e^(x - max) is wrong by u (|x - max| + 4) of itself; their sum by the weighted mean `distance` of that, and W u.
TEST(Softmax, IsNearTheTwin) {
  for_draws(80, [](Rng& rng) {
    const int64_t rows = draw_rows(rng), width = draw_width(rng);
    const float spreads[] = {0.1f, 1, 5, 40};
    const Rows x = Rows::normal(rows, width, rng, spreads[rng.below(4)]);
    std::vector<double> x64 = x.doubles(), y(x64.size()), log_y(x64.size()), y_bound, log_bound;
    reference::softmax_forward(matrix(x64, rows, width), matrix(y, rows, width));
    reference::log_softmax_forward(matrix(x64, rows, width), matrix(log_y, rows, width));
    const auto W = static_cast<double>(width);
    for (int64_t r = 0; r < rows; ++r) {
      const auto first = x64.begin() + r * width;
      const double max = width ? *std::max_element(first, first + width) : 0;
      double distance = 0;
      for (int64_t i = r * width; i < (r + 1) * width; ++i) distance += y[i] * (max - x64[i]);
      for (int64_t i = r * width; i < (r + 1) * width; ++i) {
        const double below = max - x64[i], log_sum = -log_y[i] - below;
        y_bound.push_back(kUnit * y[i] * (below + distance + W + 12) + kTiny);
        log_bound.push_back(kUnit * (2 * below + distance + W + 8 + 4 * log_sum + 2 * std::abs(log_y[i])));
      }
    }
    for_targets([&] {
      Parallel parallel(2);
      Rows got(rows, width, 2), in_place = x;
      softmax_forward(x.view(), got.view(), parallel);
      EXPECT_TRUE(within(got.floats(), y, y_bound)) << "softmax";
      softmax_forward(in_place.view(), in_place.view(), parallel);
      EXPECT_TRUE(same_bits(in_place.floats(), got.floats()));
      log_softmax_forward(x.view(), got.view(), parallel);
      EXPECT_TRUE(within(got.floats(), log_y, log_bound)) << "log-softmax";
      EXPECT_TRUE(got.guards_are_whole());
    });
  });
}

// Both get the same y, in f32.
TEST(Softmax, GradientsAreNearTheTwin) {
  for_draws(80, [](Rng& rng) {
    const int64_t rows = draw_rows(rng), width = draw_width(rng);
    const Rows x = Rows::normal(rows, width, rng, 2), dy = Rows::normal(rows, width, rng);
    const Rows dx = Rows::normal(rows, width, rng);
    Rows y(rows, width), log_y(rows, width);
    Parallel parallel(2);
    softmax_forward(x.view(), y.view(), parallel);
    log_softmax_forward(x.view(), log_y.view(), parallel);

    std::vector<double> y64 = y.doubles(), log64 = log_y.doubles(), dy64 = dy.doubles(), want = dx.doubles();
    std::vector<double> log_want = want, bound, log_bound;
    const std::vector<double> before = want;
    reference::softmax_backward(matrix(y64, rows, width), matrix(dy64, rows, width), matrix(want, rows, width));
    reference::log_softmax_backward(matrix(log64, rows, width), matrix(dy64, rows, width),
                                    matrix(log_want, rows, width));
    const auto W = static_cast<double>(width);
    for (int64_t r = 0; r < rows; ++r) {
      double dots = 0, sums = 0;
      for (int64_t i = r * width; i < (r + 1) * width; ++i)
        dots += std::abs(dy64[i] * y64[i]), sums += std::abs(dy64[i]);
      for (int64_t i = r * width; i < (r + 1) * width; ++i) {
        const double start = 2 * kUnit * std::abs(before[i]);
        bound.push_back(start + kUnit * y64[i] * ((W + 8) * dots + 4 * std::abs(dy64[i])) + kTiny);
        log_bound.push_back(start + kUnit * ((W + 12) * std::exp(log64[i]) * sums + 4 * std::abs(dy64[i])) + kTiny);
      }
    }
    for_targets([&] {
      Rows got = dx;
      softmax_backward(y.view(), dy.view(), got.view(), parallel);
      EXPECT_TRUE(within(got.floats(), want, bound)) << "softmax";
      got = dx;
      log_softmax_backward(log_y.view(), dy.view(), got.view(), parallel);
      EXPECT_TRUE(within(got.floats(), log_want, log_bound)) << "log-softmax";
      EXPECT_TRUE(got.guards_are_whole());
    });
  });
}

// As the formula: a row is NaN if it has NaN or +inf somewhere, or nothing but -inf; -inf alone has weight 0.
TEST(Softmax, NaNAndInfinity) {
  for_targets([&] {
    Parallel parallel(1);
    for (const int64_t width : {1, 7, 8, 33, 100}) {
      Rows x(5, width), y(5, width), log_y(5, width);
      for (int64_t c = 0; c < width; ++c) x(3, c) = -kInfinity;
      x(0, width - 1) = kNaN;
      x(1, 0) = kInfinity;
      if (width > 1) x(2, 0) = -kInfinity;
      softmax_forward(x.view(), y.view(), parallel);
      log_softmax_forward(x.view(), log_y.view(), parallel);
      for (int64_t c = 0; c < width; ++c) {
        for (const int64_t r : {0, 1, 3}) EXPECT_TRUE(std::isnan(y(r, c)) && std::isnan(log_y(r, c))) << r << " " << c;
        EXPECT_EQ(y(4, c), 1.0f / static_cast<float>(width));
      }
      if (width > 1) {
        EXPECT_EQ(y(2, 0), 0);
        EXPECT_EQ(log_y(2, 0), -kInfinity);
      }
    }
  });
}

TEST(Softmax, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(7));
  const Rows x = Rows::normal(200, 301, rng), dy = Rows::normal(200, 301, rng);
  expect_same_on_threads([&](Parallel& parallel) {
    Rows y(200, 301), dx = dy;
    softmax_forward(x.view(), y.view(), parallel);
    softmax_backward(y.view(), dy.view(), dx.view(), parallel);
    log_softmax_forward(x.view(), y.view(), parallel);
    log_softmax_backward(y.view(), dy.view(), dx.view(), parallel);
    return dx.floats();
  });
}

}  // namespace
}  // namespace heed::kernels
