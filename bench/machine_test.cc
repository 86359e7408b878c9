// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <gtest/gtest.h>

namespace heed::bench {
namespace {

TEST(Machine, SamplesArePositiveForAnyNumberOfThreads) {
  ReadProbe probe;
  for (int threads : {1, 2, 3}) {
    Parallel parallel(threads);
    EXPECT_GT(sample_fma_gflops(parallel), 0);
    EXPECT_GT(probe.sample_gbps(parallel), 0);
  }
}

TEST(Machine, AMomentIsQuietWhereReadingCostsNothing) {
  EXPECT_TRUE((Moment{100, 99}.quiet()));
  EXPECT_FALSE((Moment{100, 70}.quiet()));
  Parallel parallel(2);
  const Moment moment = sample_moment(parallel);
  EXPECT_GT(moment.fma_gflops, 0);
  EXPECT_GT(moment.tile_gflops, 0);
}

TEST(Machine, ReadsRangesOfAnyLength) {  // the sanitizers look whether it reads beyond
  Parallel parallel(2);
  for (size_t floats : {0, 1, 63, 64, 65, 40000}) {
    const std::vector<float> memory(floats, 1.0f);
    const Bytes range = std::as_bytes(std::span(memory));
    read_all({&range, 1}, parallel);
  }
}

}  // namespace
}  // namespace heed::bench
