// SPDX-License-Identifier: Apache-2.0
#include "bench/layers.h"

#include <gtest/gtest.h>

#include <set>

namespace heed::bench {
namespace {

TEST(Layers, HasARowOfEachKind) {
  std::set<std::string> names;
  for (const LayerRow& row : layer_rows()) EXPECT_TRUE(names.insert(name(row)).second) << name(row);
  for (const char* expected :
       {"linear forward M=1 I=512 O=2048 f32 packed", "linear forward M=8 I=2048 O=512 f32 packed, 32 in turn",
        "linear forward M=8 I=512 O=2048 bf16 packed", "linear forward M=64 I=512 O=2048 f32 packed",
        "linear forward_backward M=1024 I=512 O=2048 f32",
        "encoder forward_backward B=16 T=64 width=512 inner=2048 f32, dropout 0.1",
        "lstm forward_backward T=64 B=32 I=512 H=512 f32", "gru forward T=64 B=32 I=512 H=512 f32",
        "lstm forward T=64 B=1 I=512 H=512 f32",
        "attentive forward_backward B=32 T=32 S=32 H=512 f32, GRU, additive score"}) {
    EXPECT_TRUE(names.contains(expected)) << expected;
  }
}

TEST(Layers, CountsWhatARunDoes) {
  Parallel parallel(1);
  int found = 0;
  for (const LayerRow& row : linear_rows()) {
    if (name(row) == "linear forward M=8 I=512 O=2048 bf16 packed") {
      ++found;
      const LayerProblem problem = row.make(parallel);
      EXPECT_EQ(problem.flops, 2.0 * 8 * 512 * 2048);
      ASSERT_EQ(problem.read.size(), 1u);
      EXPECT_EQ(problem.read[0].size(), 512u * 2048 * 2);
    }
    if (name(row) == "linear forward_backward M=1024 I=512 O=2048 f32") {
      ++found;
      EXPECT_EQ(row.make(parallel).flops, 6.0 * 1024 * 512 * 2048);
    }
  }
  EXPECT_EQ(found, 2);
}

// No kernel passes the limit, so neither share of it may be the larger.
TEST(Layers, TakesTheSlowerLimit) {
  Parallel parallel(1);
  int runs = 0;
  const std::vector<std::byte> bytes(1 << 16);
  const LayerFigures f = measure_layer({.run = [&] { ++runs; }, .flops = 1, .read = {Bytes(bytes)}}, parallel, 3);
  EXPECT_GT(runs, 0);
  ASSERT_TRUE(f.percent_of_read && f.percent_of_limit);
  EXPECT_GE(*f.percent_of_limit, *f.percent_of_read);
  EXPECT_GE(*f.percent_of_limit, f.rates.percent_of_peak);
  EXPECT_FALSE(measure_layer({.run = [] {}, .flops = 1}, parallel, 3).percent_of_read);
}

}  // namespace
}  // namespace heed::bench
