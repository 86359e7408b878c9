// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/attention/prefetch.h"

#include <gtest/gtest.h>

#include <utility>

namespace heed::kernels {
namespace {

// Rows 0 to 14 of three arrays, in two parts: the first covers half of the second array.
TEST(Prefetch, FirstPartsCoverTheFirstArraysOfAList) {
  const auto rows = [](int64_t i, int64_t array) {
    const Part part = part_of_list(i, 2, array, 3);
    return std::pair(part.first(14), part.last(14));
  };
  EXPECT_EQ(rows(0, 0), std::pair(0L, 14L));
  EXPECT_EQ(rows(0, 1), std::pair(0L, 7L));
  EXPECT_EQ(rows(0, 2), std::pair(0L, 0L));
  EXPECT_EQ(rows(1, 0), std::pair(14L, 14L));
  EXPECT_EQ(rows(1, 1), std::pair(7L, 14L));
  EXPECT_EQ(rows(1, 2), std::pair(0L, 14L));
}

TEST(Prefetch, PartsOfAListCoverEveryRowOnce) {
  for (int64_t arrays = 1; arrays <= 4; ++arrays) {
    for (int64_t parts = 1; parts <= 9; ++parts) {
      for (int64_t count : {0, 1, 2, 16, 31, 128}) {
        for (int64_t m = 0; m < arrays; ++m) {
          int64_t covered = 0;
          for (int64_t i = 0; i < parts; ++i) {
            const Part part = part_of_list(i, parts, m, arrays);
            EXPECT_EQ(part.first(count), covered) << arrays << " arrays, " << parts << " parts, " << count << " rows";
            covered = part.last(count);
          }
          EXPECT_EQ(covered, count) << arrays << " arrays, " << parts << " parts";
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed::kernels
