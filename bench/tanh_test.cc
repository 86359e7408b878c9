// SPDX-License-Identifier: Apache-2.0
#include "bench/tanh.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/kernels/attention/targets.h"

namespace heed::bench {
namespace {

TEST(Tanh, IsTheKernelsOnEveryTarget) {  // whose bound is 3 units in the last place
  alignas(64) float x[128], y[128];
  for (int i = 0; i < 128; ++i) x[i] = static_cast<float>(i - 64) / 7;
  for (const std::string& target : kernels::simd_targets()) {
    kernels::use_simd_target(target);
    tanh_row(x, y, 128);
    for (int i = 0; i < 128; ++i) {
      const double want = std::tanh(double{x[i]});
      EXPECT_LE(std::abs(y[i] - want), 3 * 0x1p-23 * std::abs(want)) << target << ' ' << x[i];
    }
  }
  kernels::use_simd_target("");
}

TEST(Tanh, RunsForAnyNumberOfThreads) {
  TanhProbe probe;
  for (int threads : {1, 2, 3}) {
    Parallel parallel(threads);
    probe.run(parallel);
    EXPECT_EQ(TanhProbe::count(parallel), threads * TanhProbe::count(Parallel(1)));
  }
}

}  // namespace
}  // namespace heed::bench
