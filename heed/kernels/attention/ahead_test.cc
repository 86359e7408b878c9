#include "heed/kernels/attention/ahead.h"

#include <gtest/gtest.h>

#include <utility>

namespace heed::kernels {
namespace {

// Rows 0 to 14 of three members, asked for in two parts: the first has half of the second member.
TEST(Ahead, FirstPartsHaveTheFirstMembersOfAList) {
  const auto rows = [](int64_t i, int64_t member) {
    const Part part = part_of_list(i, 2, member, 3);
    return std::pair(part.first(14), part.last(14));
  };
  EXPECT_EQ(rows(0, 0), std::pair(0L, 14L));
  EXPECT_EQ(rows(0, 1), std::pair(0L, 7L));
  EXPECT_EQ(rows(0, 2), std::pair(0L, 0L));
  EXPECT_EQ(rows(1, 0), std::pair(14L, 14L));
  EXPECT_EQ(rows(1, 1), std::pair(7L, 14L));
  EXPECT_EQ(rows(1, 2), std::pair(0L, 14L));
}

TEST(Ahead, PartsOfAListHaveEveryRowOnce) {
  for (int64_t members = 1; members <= 4; ++members) {
    for (int64_t parts = 1; parts <= 9; ++parts) {
      for (int64_t count : {0, 1, 2, 16, 31, 128}) {
        for (int64_t m = 0; m < members; ++m) {
          int64_t asked = 0;
          for (int64_t i = 0; i < parts; ++i) {
            const Part part = part_of_list(i, parts, m, members);
            EXPECT_EQ(part.first(count), asked) << members << " members, " << parts << " parts, " << count << " rows";
            asked = part.last(count);
          }
          EXPECT_EQ(asked, count) << members << " members, " << parts << " parts";
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed::kernels
