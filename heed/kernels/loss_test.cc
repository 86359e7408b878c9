// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/loss.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

struct Instance {
  Rows z;
  std::vector<int32_t> targets;
  double smoothing;
  int32_t ignored;

  static Instance draw(Rng& rng) {
    const int64_t rows = draw_rows(rng), width = draw_width(rng, false);
    const float spreads[] = {0.1f, 1, 5, 40};
    Instance drawn{Rows::normal(rows, width, rng, spreads[rng.below(4)]), {}, 0, rng.below(2) ? -100 : 0};
    if (rng.below(2)) drawn.smoothing = rng.below(8) ? double{rng.uniform()} : 1.0;
    for (int64_t n = 0; n < rows; ++n) {
      drawn.targets.push_back(rng.below(4) ? static_cast<int32_t>(rng.below(static_cast<uint64_t>(width)))
                                           : drawn.ignored);
    }
    return drawn;
  }

  template <class T>
  CrossEntropyInputs<T> inputs(View<const T, 2> logits) const {
    return {logits, {targets.data(), {std::ssize(targets)}}, smoothing, ignored};
  }
  CrossEntropyInputs<float> inputs() const { return inputs<float>(z.view()); }
};

struct Answer {
  std::vector<float> losses, stats;
  CrossEntropySum sum;
};

Answer forward(const Instance& x, Parallel& parallel) {
  Answer out{std::vector<float>(x.targets.size(), kNaN), std::vector<float>(2 * x.targets.size(), kNaN), {}};
  out.sum = cross_entropy_forward(x.inputs(), {row(out.losses), matrix(out.stats, x.z.rows(), 2)}, parallel);
  return out;
}

// As for softmax: the sum is wrong by u (distance + W + 8) of itself, the logarithm by as much; what is smoothed by
// W + 3 roundings of its terms.
TEST(CrossEntropy, IsNearTheTwin) {
  for_draws(100, [](Rng& rng) {
    const Instance x = Instance::draw(rng);
    const int64_t rows = x.z.rows(), width = x.z.width();
    const auto W = static_cast<double>(width);
    std::vector<double> z = x.z.doubles(), losses(rows), stats(2 * rows), loss_bound(rows), stats_bound(2 * rows);
    const CrossEntropySum sum = reference::cross_entropy_forward(x.inputs<double>(matrix(z, rows, width)),
                                                                 {row(losses), matrix(stats, rows, 2)});
    double sum_bound = 0;
    for (int64_t n = 0; n < rows; ++n) {
      if (x.targets[n] == x.ignored) continue;
      double distance = 0, size = 0;
      for (int64_t j = 0; j < width; ++j) {
        const double below = stats[2 * n] - z[n * width + j];
        distance += std::exp(-below) / stats[2 * n + 1] * below;
        size += below / W;
      }
      stats_bound[2 * n + 1] = kUnit * stats[2 * n + 1] * (distance + W + 8);
      loss_bound[n] = kUnit * (distance + W + 8 + x.smoothing * (W + 3) * size + 2 * losses[n]);
      sum_bound += loss_bound[n];
    }
    for_targets([&] {
      Parallel parallel(2);
      const Answer got = forward(x, parallel);
      EXPECT_TRUE(within(got.losses, losses, loss_bound)) << "losses";
      EXPECT_TRUE(within(got.stats, stats, stats_bound)) << "stats";
      EXPECT_EQ(got.sum.count, sum.count);
      EXPECT_NEAR(got.sum.sum, sum.sum, sum_bound);
      EXPECT_EQ(got.sum.mean(), got.sum.count ? got.sum.sum / static_cast<double>(got.sum.count) : 0);
    });
  });
}

TEST(CrossEntropy, GradientsAreNearTheTwin) {
  for_draws(100, [](Rng& rng) {
    const Instance x = Instance::draw(rng);
    const int64_t rows = x.z.rows(), width = x.z.width();
    Parallel parallel(2);
    const Answer saved = forward(x, parallel);
    const Rows dz = Rows::normal(rows, width, rng, 0.1f);
    const double scale = double{rng.normal()};
    std::vector<double> z = x.z.doubles(), stats = widened(saved.stats), want = dz.doubles(), bound;
    reference::cross_entropy_backward(x.inputs<double>(matrix(z, rows, width)), matrix(stats, rows, 2), scale,
                                      matrix(want, rows, width));
    const std::vector<double> before = dz.doubles();
    for (int64_t n = 0; n < rows; ++n) {
      for (int64_t j = 0; j < width; ++j) {
        const size_t i = bound.size();
        const double below = stats[2 * n] - z[i], p = std::exp(-below) / stats[2 * n + 1];
        const double q = (j == x.targets[n] ? 1 - x.smoothing : 0) + x.smoothing / static_cast<double>(width);
        const double terms = std::abs(scale) * ((below + 12) * p + 4 * q);
        bound.push_back(x.targets[n] == x.ignored ? 0 : kUnit * (terms + 4 * std::abs(before[i])) + kTiny);
      }
    }
    for_targets([&] {
      Rows got = dz;
      cross_entropy_backward(x.inputs(), {saved.stats.data(), {rows, 2}}, scale, got.view(), parallel);
      EXPECT_TRUE(within(got.floats(), want, bound));
      EXPECT_TRUE(got.guards_are_whole());
    });
  });
}

// A logit of -inf is a word that cannot come; large logits stay in range; NaN shows, but not from an ignored token.
TEST(CrossEntropy, NaNAndInfinity) {
  for_targets([&] {
    Parallel parallel(1);
    Instance x{Rows(4, 37), {3, 3, -100, 3}, 0, -100};
    x.z(0, 36) = -kInfinity;
    x.z(1, 36) = kNaN;
    x.z(2, 0) = kNaN;
    for (int64_t j = 0; j < 37; ++j) x.z(3, j) = j == 3 ? 3e38f : -3e38f;
    const Answer got = forward(x, parallel);
    EXPECT_FLOAT_EQ(got.losses[0], std::log(36.0f));
    EXPECT_TRUE(std::isnan(got.losses[1]));
    EXPECT_EQ(got.losses[2], 0);
    EXPECT_EQ(got.losses[3], 0);
    EXPECT_EQ(got.sum.count, 3);
    Rows dz(4, 37);
    cross_entropy_backward(x.inputs(), {got.stats.data(), {4, 2}}, 1, dz.view(), parallel);
    EXPECT_EQ(dz(0, 36), 0);
    for (int64_t j = 0; j < 37; ++j) {
      EXPECT_TRUE(std::isfinite(dz(0, j)) && std::isnan(dz(1, j)) && dz(2, j) == 0 && dz(3, j) == 0) << j;
    }
  });
}

TEST(CrossEntropy, NothingCountedIsZero) {
  Parallel parallel(1);
  const Instance x{Rows(2, 5), {-100, -100}, 0.1, -100};
  const Answer got = forward(x, parallel);
  EXPECT_EQ(got.sum.count, 0);
  EXPECT_EQ(got.sum.mean(), 0);
}

TEST(CrossEntropy, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(8));
  Instance x{Rows::normal(150, 700, rng), {}, 0.1, -100};
  for (int32_t n = 0; n < 150; ++n) x.targets.push_back(n % 7 ? n : -100);
  expect_same_on_threads([&](Parallel& parallel) {
    const Answer out = forward(x, parallel);
    Rows dz(150, 700);
    cross_entropy_backward(x.inputs(), {out.stats.data(), {150, 2}}, 0.01, dz.view(), parallel);
    std::vector<float> all = dz.floats();
    all.insert(all.end(), out.losses.begin(), out.losses.end());
    all.push_back(static_cast<float>(out.sum.sum));
    return all;
  });
}

}  // namespace
}  // namespace heed::kernels
