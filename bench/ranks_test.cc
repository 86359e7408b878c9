// SPDX-License-Identifier: Apache-2.0
#include "bench/ranks.h"

#include <gtest/gtest.h>

#include "heed/dist/testing.h"

namespace heed::bench {
namespace {

TEST(RanksBench, TheModelHasWhatAStepIsMadeOf) {
  const StepCosts costs{
      .batch = 1, .rest = 0.5, .bytes = 4e6, .latency = 0.01, .message = 0, .bandwidth = 1e6, .hides = 0.5};
  EXPECT_EQ(travel_seconds(costs, 1), 0);
  EXPECT_DOUBLE_EQ(travel_seconds(costs, 2), 0.02 + 4) << "half of the gradients there, and half of the sums";
  EXPECT_DOUBLE_EQ(travel_seconds(costs, 4), 0.02 + 6);
  EXPECT_DOUBLE_EQ(step_seconds(costs, 1, 3, true), 3.5);
  EXPECT_DOUBLE_EQ(step_seconds(costs, 2, 3, false), 3.5 + 4.02);
  EXPECT_DOUBLE_EQ(step_seconds(costs, 2, 3, true), 3.5 + 3.52);
}

TEST(RanksBench, RunsOnRanks) {
  for (const int ranks : {1, 2}) {
    dist::testing::run_ranks(ranks, [](dist::Communicator& communicator) {
      bench_ranks({.preset = "transformer-tiny",
                   .vocabulary = 50,
                   .batch_tokens = 64,
                   .length = 8,
                   .accumulate = 2,
                   .rounds = 1},
                  communicator);
    });
  }
}

}  // namespace
}  // namespace heed::bench
