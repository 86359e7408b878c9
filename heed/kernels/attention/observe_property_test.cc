// SPDX-License-Identifier: Apache-2.0
// Observers on random shapes, strides, masks, scores and numbers, on every SIMD target, against what the twin says of
// the full matrix.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "heed/kernels/attention/observe_testing.h"

namespace heed::kernels::attention_testing {
namespace {

const std::vector<double>& at_stage(const PairErrors& errors, AttentionStage stage) {
  const std::array all{&errors.raw, &errors.capped, &errors.masked, &errors.weight};
  return *all[static_cast<size_t>(stage)];
}

std::vector<double> twin_at_stage(const Problem& problem, const Twin& twin, AttentionStage stage) {
  if (stage == AttentionStage::masked) return twin.masked;
  if (stage == AttentionStage::weight) return twin.weights;
  std::vector<double> scores = twin.raw;
  const double cap = problem.instance.extras.softcap;
  for (double& x : scores) x = stage == AttentionStage::capped && cap > 0 ? cap * std::tanh(x / cap) : x;
  return scores;
}

// Of a sum of weights: what each may lack, and one rounding of the sum a term, with some for the shares of a mean. The
// pooled errors are what the twin's own pooling makes of them.
Answers<double> bounds_of(const AttentionShape& n, const Questions& ask, const PairErrors& errors,
                          const Answers<double>& want) {
  Answers<double> bounds = twin_answers(n, ask, errors.weight, at_stage(errors, ask.stage));
  const auto add_roundings = [](std::vector<double>& bound, const std::vector<double>& sums, int64_t terms) {
    for (size_t i = 0; i < bound.size(); ++i) {
      bound[i] += (sums[i] + bound[i]) * kUnit * static_cast<double>(terms + 8);
    }
  };
  add_roundings(bounds.received, want.received, n.T);
  add_roundings(bounds.map_mean, want.map_mean, n.T + n.S);
  return bounds;
}

TEST(ObserveProperty, EqualsWhatTheTwinSaysOfTheFullMatrix) {
  Parallel one(1);
  for_draws(2500, [&](Rng& rng) {
    const Instance x = draw_instance(rng, rng.uniform() < 0.9f ? 2e5 : 2e6);
    const Questions ask = draw_questions(rng, x.shape);
    SCOPED_TRACE(x.describe() + " " + ask.describe());
    Problem problem(x);
    const Twin twin = run_twin(problem);
    const PairErrors errors = pair_errors(problem, twin);
    const Answers<double> want = twin_answers(x.shape, ask, twin.weights, twin_at_stage(problem, twin, ask.stage));
    const Answers<double> bounds = bounds_of(x.shape, ask, errors, want);
    for_targets([&] {
      problem.forward(one);
      const Answers<float> got = observe(problem, ask, one);
      EXPECT_TRUE(within(got.rows, want.rows, bounds.rows)) << "rows";
      EXPECT_TRUE(within(got.received, want.received, bounds.received)) << "received";
      EXPECT_TRUE(within(got.map_mean, want.map_mean, bounds.map_mean)) << "map_mean";
      EXPECT_TRUE(within(got.map_max, want.map_max, bounds.map_max)) << "map_max";
    });
  });
}

TEST(ObserveProperty, AnyNumberOfThreadsGivesTheSameBits) {
  Parallel one(1), two(2), three(3), five(5);
  for_draws(150, [&](Rng& rng) {
    Instance x = draw_instance(rng, 2e6);
    // Keys of few heads are split between tasks from some length on.
    if (rng.below(2)) x = {.shape = {1, 1, 1, 40, 2100, 8, 4}, .seed = x.seed};
    const Questions ask = draw_questions(rng, x.shape);
    SCOPED_TRACE(x.describe() + " " + ask.describe());
    Problem problem(x);
    problem.forward(one);
    const Answers<float> alone = observe(problem, ask, one);
    for (Parallel* several : {&two, &three, &five}) expect_same_bits(observe(problem, ask, *several), alone);
  });
}

// Queries that see nothing, and keys that nobody sees, may hold anything.
TEST(ObserveProperty, WhatIsHiddenHasNoInfluence) {
  Parallel one(1);
  for_draws(300, [&](Rng& rng) {
    const Instance x = draw_instance(rng, 2e5);
    Questions ask = draw_questions(rng, x.shape);
    if (ask.stage < AttentionStage::masked) ask.stage = AttentionStage::masked;
    SCOPED_TRACE(x.describe() + " " + ask.describe());
    const auto& [B, Hq, Hk, T, S, D, Dv] = x.shape;
    Problem problem(x);
    const auto set_hidden = [&](const auto& number) {
      std::vector<char> query_sees(static_cast<size_t>(B * Hq * T)), key_seen(static_cast<size_t>(B * Hk * S));
      for (int64_t i = 0; i < B * Hq * T * S; ++i) {
        const int64_t s = i % S, t = i / S % T, h = i / S / T % Hq, b = i / S / T / Hq;
        if (!problem.visible(b, h, t, s)) continue;
        query_sees[static_cast<size_t>(i / S)] = 1;
        key_seen[static_cast<size_t>((b * Hk + h / x.group()) * S + s)] = 1;
      }
      for (int64_t i = 0; i < B * Hq * T; ++i)
        for (int64_t d = 0; d < D && !query_sees[static_cast<size_t>(i)]; ++d)
          problem.q(i / T / Hq, i / T % Hq, i % T, d) = number();
      for (int64_t i = 0; i < B * Hk * S; ++i)
        for (int64_t d = 0; d < D && !key_seen[static_cast<size_t>(i)]; ++d)
          problem.k(i / S / Hk, i / S % Hk, i % S, d) = number();
    };
    for_targets([&] {
      set_hidden([] { return 0.0f; });
      problem.forward(one);
      const Answers<float> clean = observe(problem, ask, one);
      set_hidden([&] {
        return from_bits(std::array{0x7fc00001u, 0xffc12345u, 0x7f800000u, 0xff800000u}[rng.below(4)]);
      });
      problem.forward(one);
      expect_same_bits(observe(problem, ask, one), clean);
    });
  });
}

}  // namespace
}  // namespace heed::kernels::attention_testing
