// SPDX-License-Identifier: Apache-2.0
#include "fuzz/mutate.h"

#include <gtest/gtest.h>

#include <set>

namespace heed::fuzz {
namespace {

const std::vector<std::string> kSeeds = {"{\"a\": 12, \"b\": [3]}", std::string("\x93\0\1\2", 4), ""};

TEST(Mutate, TheSameRunIsTheSameInput) {
  for (uint64_t run = 0; run < 1000; ++run) EXPECT_EQ(mutated(kSeeds, 5, run), mutated(kSeeds, 5, run));
}

TEST(Mutate, RunsAndSeedsDiffer) {
  std::set<std::string> inputs;
  for (uint64_t run = 0; run < 1000; ++run) {
    inputs.insert(mutated(kSeeds, 1, run));
    inputs.insert(mutated(kSeeds, 2, run));
  }
  EXPECT_GT(inputs.size(), 1000u) << "short seeds are changed alike now and then, but not mostly";
}

}  // namespace
}  // namespace heed::fuzz
