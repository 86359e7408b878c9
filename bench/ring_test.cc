// SPDX-License-Identifier: Apache-2.0
#include "bench/ring.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heed/base/testing.h"
#include "heed/dist/testing.h"

namespace heed::bench {
namespace {

using heed::testing::error_of;

RingReport measure(const RingBenchOptions& options) {
  RingReport report;
  dist::testing::run_ranks(static_cast<int>(options.ranks), [&](dist::Communicator& communicator) {
    RingReport own = measure_ring(communicator, options);
    if (communicator.rank() == 0) report = std::move(own);
  });
  return report;
}

TEST(RingBench, EqualsOneProcessAndSharesTheWork) {
  const RingReport report = measure({.ranks = 3, .length = 600, .width = 16});
  ASSERT_EQ(report.passes.size(), 3u);
  for (const RingPassFigures& f : report.passes) {
    EXPECT_GT(f.seconds, 0) << f.pass;
    EXPECT_GT(f.one_process.value_or(0), 0) << f.pass;
  }
  ASSERT_EQ(report.ranks.size(), 3u);
  for (const RingRankFigures& f : report.ranks) {
    EXPECT_EQ(f.rows, 200);
    EXPECT_EQ(f.pairs, 3 * 2 * 600 * 601.0 / 2 / 3);  // of three passes and two heads
    EXPECT_LT(f.megabytes, report.one_process_megabytes);
  }
  ASSERT_EQ(report.differences.size(), 5u);
  // Some thousand roundings of 2^-24, of what the largest elements are made of.
  for (const RingDifference& d : report.differences) {
    EXPECT_LE(d.most, 1e3 * 0x1p-24 * d.largest) << d.of;
    EXPECT_GT(d.largest, 0) << d.of;
  }
}

TEST(RingBench, AloneComparesNothing) {
  const RingReport report = measure({.ranks = 2, .length = 64, .width = 8, .window = 5, .full = true, .alone = true});
  EXPECT_TRUE(report.differences.empty());
  EXPECT_FALSE(report.passes[0].one_process);
  EXPECT_EQ(report.one_process_threads, 0);
}

TEST(RingBench, WritesJson) {
  const heed::testing::TemporaryFolder folder;
  bench_ring({.json = folder.file("ring.json"), .ranks = 2, .length = 40, .width = 4});
  EXPECT_GT(std::filesystem::file_size(folder.file("ring.json")), 200u);
}

TEST(RingBench, OptionsThatDoNotFitAreNamed) {
  EXPECT_EQ(error_of([] { bench_ring({.heads = 4, .kv_heads = 3}); }),
            "--kv-heads is 3, expected a divisor of 4 (--heads)");
  EXPECT_EQ(error_of([] { bench_ring({.ranks = 4, .length = 7}); }),
            "--length is 7, expected 8 or more, two rows for each of 4 ranks");
}

}  // namespace
}  // namespace heed::bench
