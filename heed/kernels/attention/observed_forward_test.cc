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

// Row `row` of [B,Hq,T], of the twin's pairs.
struct TwinRow {
  std::span<const double> weights, scores, weight_errors, score_errors;
  std::span<const char> seen;

  TwinRow(const Twin& twin, const PairErrors& errors, int64_t row, int64_t S) {
    const auto of = [&](const auto& pairs) {
      return std::span(pairs).subspan(static_cast<size_t>(row * S), static_cast<size_t>(S));
    };
    weights = of(twin.weights), scores = of(twin.masked);
    weight_errors = of(errors.weight), score_errors = of(errors.masked);
    seen = of(twin.seen);
  }

  double entropy() const {
    double sum = 0;
    for (double w : weights) sum -= w > 0 ? w * std::log(w) : 0;
    return sum;
  }

  // entropy = ln(sum e^x) - sum e^x x / sum e^x, with x <= 0 the distance from the maximum rounded up by less than one
  // bit. Each term of the second sum is wrong by what its weight and its x are, and by a rounding or two an addition;
  // so is the first sum, within its logarithm.
  double entropy_error() const {
    const double roundings = 2 * kUnit * static_cast<double>(std::ssize(weights) + 12);
    double largest = -std::numeric_limits<double>::infinity(), error = 0;
    for (size_t s = 0; s < seen.size(); ++s)
      if (seen[s]) largest = std::max(largest, scores[s]);
    for (size_t s = 0; s < seen.size(); ++s) {
      if (!seen[s]) continue;
      const double distance = largest - scores[s] + 1, x_error = score_errors[s] + 2 * kUnit * (distance + 5);
      const double weight_error = weight_errors[s] + weights[s] * roundings;
      error += weight_error * (distance + 1) + (weights[s] + weight_error) * x_error;
    }
    return error + 8 * kUnit * (entropy() + 1) + roundings;
  }

  // The largest `rank`-th of weights that are each wrong by at most their error, times `sign`.
  double order_statistic(size_t rank, double sign) const {
    std::vector<double> shifted;
    for (size_t s = 0; s < seen.size(); ++s)
      if (seen[s]) shifted.push_back(weights[s] + sign * weight_errors[s]);
    std::sort(shifted.begin(), shifted.end(), std::greater<>());
    return shifted[rank];
  }
};

void expect_top(const TwinRow& row, std::span<const int32_t> keys, std::span<const float> weights) {
  const auto seen = static_cast<size_t>(std::count(row.seen.begin(), row.seen.end(), 1));
  std::set<int32_t> different;
  for (size_t rank = 0; rank < keys.size(); ++rank) {
    if (rank >= seen) {
      EXPECT_EQ(keys[rank], -1);
      EXPECT_EQ(weights[rank], 0.0f);
      continue;
    }
    ASSERT_GE(keys[rank], 0) << "rank " << rank << " of " << seen;
    const auto key = static_cast<size_t>(keys[rank]);
    EXPECT_TRUE(row.seen[key]) << "key " << key;
    EXPECT_TRUE(different.insert(keys[rank]).second) << "key " << key << " comes twice";
    EXPECT_NEAR(weights[rank], row.weights[key], row.weight_errors[key]) << "rank " << rank;
    EXPECT_LE(weights[rank], row.order_statistic(rank, 1)) << "rank " << rank;
    EXPECT_GE(weights[rank], row.order_statistic(rank, -1)) << "rank " << rank;
    EXPECT_LE(weights[rank], weights[rank == 0 ? 0 : rank - 1]) << "rank " << rank;
  }
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
