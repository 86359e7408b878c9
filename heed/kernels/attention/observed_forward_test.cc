// SPDX-License-Identifier: Apache-2.0
// What forward observes: the entropy of each row and its top-k keys, against the twin's full matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "heed/kernels/attention/observe_testing.h"

namespace heed::kernels::attention_testing {
namespace {

struct Told {
  std::vector<float> entropy, top_weights;
  std::vector<int32_t> top_keys;
};

Told forward_and_tell(const Problem& problem, int64_t K, Parallel& parallel) {
  const AttentionShape& n = problem.instance.shape;
  const auto rows = static_cast<size_t>(n.B * n.Hq * n.T);
  Told told{std::vector<float>(rows, -1.0f), std::vector<float>(rows * static_cast<size_t>(K), -1.0f),
            std::vector<int32_t>(rows * static_cast<size_t>(K), -2)};
  AttentionOutputs out = problem.outputs();
  out.entropy = {told.entropy.data(), {n.B, n.Hq, n.T}};
  out.top_weights = {told.top_weights.data(), {n.B, n.Hq, n.T, K}};
  out.top_keys = {told.top_keys.data(), {n.B, n.Hq, n.T, K}};
  Workspace workspace;
  attention_forward(problem.inputs(), out, problem.options(), workspace, parallel);
  return told;
}

TEST(ObservedForward, EntropyAndStrongestKeysAreThoseOfTheTwin) {
  Parallel one(1);
  for_draws(1500, [&](Rng& rng) {
    const Instance x = draw_instance(rng, 2e5);
    const auto K = static_cast<int64_t>(rng.below(12));
    SCOPED_TRACE(x.describe() + " K=" + std::to_string(K));
    Problem problem(x);
    const Twin twin = run_twin(problem);
    const PairErrors errors = pair_errors(problem, twin);
    for_targets([&] {
      const Told told = forward_and_tell(problem, K, one);
      for (int64_t i = 0; i < std::ssize(told.entropy); ++i) {
        SCOPED_TRACE("row " + std::to_string(i));
        const TwinRow row(twin, errors, i, x.shape.S);
        ASSERT_NEAR(told.entropy[static_cast<size_t>(i)], row.entropy(), row.entropy_error());
        const auto begin = static_cast<size_t>(i * K), count = static_cast<size_t>(K);
        expect_top(row, std::span(told.top_keys).subspan(begin, count),
                   std::span(told.top_weights).subspan(begin, count));
        if (::testing::Test::HasFailure()) return;
      }
    });
  });
}

// Of equal keys the first ones, in their order, on any number of threads.
TEST(ObservedForward, OfEqualKeysTheFirstComeFirst) {
  Parallel one(1), three(3);
  for_targets([&] {
    Problem problem({.shape = {1, 2, 1, 70, 300, 3, 3}});
    fill(problem.k, 0.5f);
    for (Parallel* threads : {&one, &three}) {
      const Told told = forward_and_tell(problem, 5, *threads);
      for (size_t i = 0; i < told.top_keys.size(); ++i) {
        ASSERT_EQ(told.top_keys[i], static_cast<int32_t>(i % 5));
        ASSERT_NEAR(told.top_weights[i], 1.0 / 300, 310 * kUnit / 300);
      }
      for (float entropy : told.entropy) ASSERT_NEAR(entropy, std::log(300.0), 310 * kUnit * std::log(300.0));
    }
  });
}

}  // namespace
}  // namespace heed::kernels::attention_testing
