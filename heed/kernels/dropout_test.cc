// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/dropout.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

ElementDropout draw_dropout(Rng& rng) {
  return {rng.below(5) ? rng.uniform(0.01f, 0.9f) : 0, rng.next_u64(), rng.next_u64() >> 1};
}

// 1 / (1 - rate) is rounded, and so are product and sum; what is dropped is exactly 0.
TEST(Dropout, IsNearTheTwin) {
  for_draws(80, [](Rng& rng) {
    const ElementDropout dropout = draw_dropout(rng);
    const int64_t n = rng.below(2) ? draw_width(rng) : static_cast<int64_t>(rng.below(700));
    const std::vector<float> x = normals(n, rng), residual = normals(n, rng);
    const bool with_residual = rng.below(2);
    const View<const float, 1> x_view(x.data(), {n}), residual_view(residual.data(), {n});

    std::vector<double> x64 = widened(x), residual64 = widened(residual), y(x.size()), dx = residual64, bound;
    reference::dropout_forward(dropout, row(x64), with_residual ? row(residual64) : View<double, 1>(), row(y));
    reference::dropout_backward(dropout, row(x64), row(dx));
    for (size_t i = 0; i < x64.size(); ++i) {
      const double kept = dropout.keeps(static_cast<int64_t>(i)) ? std::abs(x64[i]) * double{dropout.keep_scale()} : 0;
      bound.push_back(kUnit * (3 * kept + std::abs(residual64[i])));
    }
    for_targets([&] {
      Parallel parallel(2);
      std::vector<float> got(x.size(), kNaN), got_dx = residual;
      dropout_forward(dropout, x_view, with_residual ? residual_view : View<const float, 1>(), row(got), parallel);
      dropout_backward(dropout, x_view, row(got_dx), parallel);
      EXPECT_TRUE(within(got, y, bound)) << "y";
      EXPECT_TRUE(within(got_dx, dx, bound)) << "dx";
      for (size_t i = 0; i < got.size() && !with_residual; ++i) {
        EXPECT_EQ(got[i] == 0, !dropout.keeps(static_cast<int64_t>(i)) || x[i] == 0) << i;
      }
    });
  });
}

// The share of what is dropped is binomial: within five deviations of the rate. Other seeds and streams, and
// neighbours, are independent: they agree as often as chance has it.
TEST(Dropout, DrawsAtTheRateAndIndependently) {
  const int64_t n = 200000;
  const auto count = static_cast<double>(n);
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    const ElementDropout one{rate, seeded(11), 5}, other_stream{rate, seeded(11), 6}, other_seed{rate, seeded(12), 5};
    const double p = double{rate}, agree = p * p + (1 - p) * (1 - p);
    double dropped = 0, same_stream = 0, same_seed = 0, same_next = 0, same_block = 0;
    for (int64_t i = 0; i < n; ++i) {
      dropped += !one.keeps(i);
      same_stream += one.keeps(i) == other_stream.keeps(i);
      same_seed += one.keeps(i) == other_seed.keeps(i);
      same_next += one.keeps(i) == one.keeps(i + 1);
      same_block += one.keeps(i) == one.keeps(i + ElementDropout::kBlocks);
    }
    EXPECT_NEAR(dropped / count, p, 5 * std::sqrt(p * (1 - p) / count) + 0x1p-16);
    // Pairs overlap: twice the variance of independent ones covers it.
    const double deviation = 5 * std::sqrt(2 * agree * (1 - agree) / count) + 0x1p-15;
    for (const double same : {same_stream, same_seed, same_next, same_block}) {
      EXPECT_NEAR(same / count, agree, deviation);
    }
  }
}

// Of many elements some draw the threshold itself, which is kept.
TEST(Dropout, TheThresholdIsKept) {
  const int64_t n = 300000;
  const ElementDropout dropout{0.25f, seeded(7), 8}, next{0.25f + 0x1p-16f, seeded(7), 8};
  const std::vector<float> x(static_cast<size_t>(n), 1.0f);
  int64_t on_the_edge = 0;
  std::vector<char> kept;
  for (int64_t i = 0; i < n; ++i) {
    kept.push_back(dropout.keeps(i));
    on_the_edge += dropout.keeps(i) && !next.keeps(i);
  }
  ASSERT_GT(on_the_edge, 0);
  for_targets([&] {
    Parallel parallel(1);
    std::vector<float> y(x.size());
    dropout_forward(dropout, {x.data(), {n}}, {}, row(y), parallel);
    int64_t wrong = 0;
    for (size_t i = 0; i < y.size(); ++i) wrong += (y[i] != 0) != static_cast<bool>(kept[i]);
    EXPECT_EQ(wrong, 0);
  });
}

// Attention with the same seed draws from other counters.
TEST(Dropout, SharesNoCounterWithAttention) {
  const ElementDropout dropout{0.5f, 1, 3};
  EXPECT_NE(dropout.counter(2), Dropout::counter(3, 0, 2 * Dropout::kKeysADraw));
  EXPECT_EQ(dropout.counter(2)[3] >> 31, 1u);
}

TEST(Dropout, WorksInPlace) {
  Rng rng(seeded(10));
  const ElementDropout dropout{0.3f, seeded(1), 2};
  const std::vector<float> x = normals(300, rng), residual = normals(300, rng);
  for_targets([&] {
    Parallel parallel(1);
    std::vector<float> y(300), over_x = x, over_residual = residual;
    dropout_forward(dropout, {x.data(), {300}}, {residual.data(), {300}}, row(y), parallel);
    dropout_forward(dropout, row(over_x), {residual.data(), {300}}, row(over_x), parallel);
    dropout_forward(dropout, {x.data(), {300}}, row(over_residual), row(over_residual), parallel);
    EXPECT_TRUE(same_bits(over_x, y));
    EXPECT_TRUE(same_bits(over_residual, y));
  });
}

TEST(Dropout, NaNShowsWhereItIsKept) {
  const ElementDropout dropout{0.5f, seeded(3), 4};
  for_targets([&] {
    Parallel parallel(1);
    const std::vector<float> x(100, kNaN);
    std::vector<float> y(100);
    dropout_forward(dropout, {x.data(), {100}}, {}, row(y), parallel);
    for (int64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(std::isnan(y[i]), dropout.keeps(i)) << i;
      EXPECT_EQ(y[i] == 0, !dropout.keeps(i)) << i;
    }
  });
}

TEST(Dropout, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(11));
  const std::vector<float> x = normals(70001, rng);
  expect_same_on_threads([&](Parallel& parallel) {
    std::vector<float> y(x.size());
    dropout_forward({0.1f, seeded(1), 2}, {x.data(), {std::ssize(x)}}, {}, row(y), parallel);
    dropout_backward({0.2f, seeded(1), 3}, {x.data(), {std::ssize(x)}}, row(y), parallel);
    return y;
  });
}

}  // namespace
}  // namespace heed::kernels
