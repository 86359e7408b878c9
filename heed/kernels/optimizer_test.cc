// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/optimizer.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

// The state of n parameters: a random one, as after some steps.
template <class T>
struct State {
  std::vector<T> values, gradients, m, v;

  StepBuffers<T> buffers(std::span<const ElementRange> decayed, double gradient_scale, bool clear) {
    return {row(values), row(gradients), decayed, gradient_scale, clear};
  }
};

State<float> draw_state(int64_t n, Rng& rng) {
  State<float> state{normals(n, rng), normals(n, rng), normals(n, rng), normals(n, rng)};
  for (float& v : state.v) v *= v;
  return state;
}

State<double> widened(const State<float>& x) {
  return {testing::widened(x.values), testing::widened(x.gradients), testing::widened(x.m), testing::widened(x.v)};
}

// Rising, disjoint, with gaps.
std::vector<ElementRange> draw_ranges(int64_t n, Rng& rng) {
  std::vector<ElementRange> ranges;
  for (int64_t at = 0; at < n;) {
    const int64_t begin = at + static_cast<int64_t>(rng.below(40));
    const int64_t end = std::min(n, begin + static_cast<int64_t>(rng.below(60)));
    if (begin < end) ranges.push_back({begin, end});
    at = std::max(end, begin) + 1;
  }
  return ranges;
}

bool decays(const std::vector<ElementRange>& ranges, int64_t i) {
  return std::any_of(ranges.begin(), ranges.end(), [i](const auto& r) { return i >= r.begin && i < r.end; });
}

// g = scale gradient + decay value is wrong by 4 u of the sizes of its terms, G; the velocity by 3 u more of its own;
// the new value by 4 u of what is added up.
TEST(Optimizer, SgdIsNearTheTwin) {
  for_draws(80, [](Rng& rng) {
    const int64_t n = rng.below(2) ? draw_width(rng) : 500;
    const std::vector<ElementRange> ranges = draw_ranges(n, rng);
    const State<float> state = draw_state(n, rng);
    const SgdOptions options{.rate = double{rng.uniform()},
                             .momentum = rng.below(2) ? 0.9 : 0,
                             .nesterov = rng.below(2) == 1,
                             .weight_decay = rng.below(2) ? 0.1 : 0};
    const double scale = rng.below(2) ? 1 : double{rng.uniform()};
    State<double> want = widened(state);
    const State<double> start = want;
    reference::sgd_step(options, want.buffers(ranges, scale, true), row(want.m));
    std::vector<double> value_bound, m_bound;
    for (int64_t i = 0; i < n; ++i) {
      const double decay = decays(ranges, i) ? options.weight_decay : 0;
      const double G = scale * std::abs(start.gradients[i]) + decay * std::abs(start.values[i]);
      const double velocity = options.momentum * std::abs(start.m[i]) + G, step = G + velocity;
      m_bound.push_back(options.momentum == 0 ? 0 : 7 * kUnit * velocity);
      value_bound.push_back(kUnit * (std::abs(start.values[i]) + 16 * options.rate * step));
    }
    for_targets([&] {
      Parallel parallel(2);
      State<float> got = state;
      sgd_step(options, got.buffers(ranges, scale, true), row(got.m), parallel);
      EXPECT_TRUE(within(got.values, want.values, value_bound)) << "values";
      EXPECT_TRUE(within(got.m, want.m, m_bound)) << "velocity";
      EXPECT_TRUE(within(got.gradients, want.gradients, std::vector<double>(n))) << "cleared";
    });
  });
}

// With G as above, wrong by e = 4 u G, and t the factors 1 - beta:
//   m   8 u (|m| + t1 (G + |m|))
//   v   4 u v + t2 (2 |g| e + e^2);  its root, half that over the root, or the root of that
//   value   those of m and the denominator over the denominator, and 6 u of what is added up
TEST(Optimizer, AdamIsNearTheTwin) {
  for_draws(80, [](Rng& rng) {
    const int64_t n = rng.below(2) ? draw_width(rng) : 500;
    const std::vector<ElementRange> ranges = draw_ranges(n, rng);
    const State<float> state = draw_state(n, rng);
    const AdamOptions options{
        .rate = 0.01 * double{rng.uniform()}, .weight_decay = rng.below(2) ? 0.1 : 0, .decoupled = rng.below(2) == 1};
    const double scale = rng.below(2) ? 1 : double{rng.uniform()};
    const int64_t step = 1 + static_cast<int64_t>(rng.below(1000));
    State<double> want = widened(state);
    const State<double> start = want;
    reference::adam_step(options, want.buffers(ranges, scale, false), {row(want.m), row(want.v), step});

    std::vector<double> value_bound, m_bound, v_bound;
    const double t1 = 1 - options.beta1, t2 = 1 - options.beta2;
    const double step_size = options.rate / (1 - std::pow(options.beta1, step));
    const double root_scale = 1 / std::sqrt(1 - std::pow(options.beta2, step));
    for (int64_t i = 0; i < n; ++i) {
      const double decay = decays(ranges, i) && !options.decoupled ? options.weight_decay : 0;
      const double G = scale * std::abs(start.gradients[i]) + decay * std::abs(start.values[i]), e = 4 * kUnit * G;
      const double m_error = 8 * kUnit * (std::abs(start.m[i]) + t1 * (G + std::abs(start.m[i])));
      const double v = want.v[i], v_error = 4 * kUnit * v + t2 * (2 * G * e + e * e);
      const double root_error = std::min(std::sqrt(v_error), v_error / (2 * std::sqrt(v)));
      const double below = std::sqrt(v) * root_scale + options.eps;
      const double below_error = root_scale * root_error + 4 * kUnit * below;
      const double ratio = std::abs(want.m[i]) / below, ratio_error = (m_error + ratio * below_error) / below;
      m_bound.push_back(m_error);
      v_bound.push_back(v_error);
      value_bound.push_back(1.01 * step_size * ratio_error +
                            6 * kUnit * (std::abs(start.values[i]) + step_size * ratio));
    }
    for_targets([&] {
      Parallel parallel(2);
      State<float> got = state;
      adam_step(options, got.buffers(ranges, scale, false), {row(got.m), row(got.v), step}, parallel);
      EXPECT_TRUE(within(got.values, want.values, value_bound)) << "values";
      EXPECT_TRUE(within(got.m, want.m, m_bound)) << "m";
      EXPECT_TRUE(within(got.v, want.v, v_bound)) << "v";
      EXPECT_TRUE(same_bits(got.gradients, state.gradients));
    });
  });
}

TEST(Optimizer, NormIsThatOfTheTwin) {
  Rng rng(seeded(15));
  for (const int64_t n : {0, 1, 15, 16, 17, 1000, 40000}) {
    const std::vector<float> g = normals(n, rng);
    std::vector<double> g64 = testing::widened(g);
    const double want = reference::gradient_norm(row(g64));
    for_targets([&] {
      Workspace workspace(gradient_norm_bytes(n));
      double one = 0;
      for (const int threads : {1, 2, 3, 5}) {
        Parallel parallel(threads);
        const double norm = gradient_norm({g.data(), {n}}, workspace, parallel);
        EXPECT_NEAR(norm, want, static_cast<double>(n) * 0x1p-52 * want);
        if (threads == 1) one = norm;
        EXPECT_EQ(norm, one) << threads << " threads";
      }
    });
  }
}

TEST(Optimizer, ClippingBringsTheNormDown) {
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_EQ(clip_scale(0, 1), 1);
  EXPECT_NEAR(4 * clip_scale(4, 1), 1, 1e-6);
  EXPECT_TRUE(std::isnan(clip_scale(std::nan(""), 1)));
  EXPECT_EQ(clip_scale(double{kInfinity}, 1), 0);
}

TEST(Optimizer, NaNShowsAndStaysWhereItIs) {
  Rng rng(seeded(16));
  for_targets([&] {
    Parallel parallel(1);
    State<float> state = draw_state(37, rng);
    state.gradients[36] = kNaN;
    Workspace workspace(gradient_norm_bytes(37));
    EXPECT_TRUE(std::isnan(gradient_norm(row(state.gradients), workspace, parallel)));
    adam_step({}, state.buffers({}, 1, true), {row(state.m), row(state.v), 1}, parallel);
    for (size_t i = 0; i < 37; ++i) EXPECT_EQ(std::isnan(state.values[i]), i == 36) << i;
    EXPECT_EQ(state.gradients[36], 0);
  });
}

TEST(Optimizer, SameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(17));
  const int64_t n = 70001;
  const State<float> state = draw_state(n, rng);
  const std::vector<ElementRange> ranges = {{5, 20000}, {40000, 70001}};
  expect_same_on_threads([&](Parallel& parallel) {
    State<float> moved = state;
    adam_step({.weight_decay = 0.1}, moved.buffers(ranges, 0.5, false), {row(moved.m), row(moved.v), 3}, parallel);
    sgd_step({.momentum = 0.9, .weight_decay = 0.1}, moved.buffers(ranges, 0.5, true), row(moved.m), parallel);
    return moved.values;
  });
}

}  // namespace
}  // namespace heed::kernels
