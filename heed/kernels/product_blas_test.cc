// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/product_blas.h"

#include <gtest/gtest.h>

namespace heed::kernels {

TEST(BlasCore, AProcessorThatOpenBlasKnowsIsLeftToIt) {
  for (const char* core : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"}) {
    EXPECT_EQ(better_blas_core(core, {.avx2 = true, .avx512 = true}), "") << core;
    EXPECT_EQ(better_blas_core(core, {.avx2 = true}), "") << core;
  }
}

TEST(BlasCore, AnOldOneStaysAsItIs) {
  EXPECT_EQ(better_blas_core("Prescott", {}), "");
  EXPECT_EQ(better_blas_core("Sandybridge", {}), "");
}

TEST(BlasCore, OneThatIsTakenForAnOldOneGetsWhatItHas) {
  EXPECT_EQ(better_blas_core("Prescott", {.avx2 = true}), "Haswell");
  EXPECT_EQ(better_blas_core("Prescott", {.avx2 = true, .avx512 = true}), "SkylakeX");
  EXPECT_EQ(better_blas_core("Nehalem", {.avx2 = true}), "Haswell");
}

TEST(BlasCore, WhatIsAskedForIsEnough) {
  EXPECT_NE(blas_core(), "");
  const std::string better = better_blas_core(), core = better.empty() ? blas_core() : better;
  EXPECT_EQ(better_blas_core(core, {.avx2 = !better.empty(), .avx512 = true}), "");
}

}  // namespace heed::kernels
