// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "heed/base/testing.h"

namespace heed::dist {
namespace {

using heed::testing::error_of;

TEST(Placement, EveryRowIsHeldOnce) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const int64_t length : {0, 1, 5, 16, 56, 57, 1000}) {
      const Placement placement(length, ranks);
      std::vector<int> holders(static_cast<size_t>(length));
      int64_t rows = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        rows += placement.rows(rank);
        for (const int chunk : placement.chunks_of(rank)) {
          for (int64_t t = placement.chunk(chunk).begin; t < placement.chunk(chunk).end; ++t) {
            ++holders[static_cast<size_t>(t)];
          }
        }
      }
      EXPECT_EQ(rows, length);
      EXPECT_TRUE(std::all_of(holders.begin(), holders.end(), [](int n) { return n == 1; }));
    }
  }
}

// Chunks are consecutive, and their sizes are different by one at most.
TEST(Placement, ChunksAreOfOneSizeAndFollowEachOther) {
  const Placement placement(1003, 4);
  int64_t end = 0;
  for (int i = 0; i < placement.chunks(); ++i) {
    EXPECT_EQ(placement.chunk(i).begin, end);
    end = placement.chunk(i).end;
    EXPECT_GE(placement.chunk(i).count(), 1003 / 8);
    EXPECT_LE(placement.chunk(i).count(), 1003 / 8 + 1);
  }
  EXPECT_EQ(end, 1003);
}

// Visible pairs of a causal mask by rank: row t sees t + 1 keys.
std::vector<int64_t> causal_pairs(const Placement& placement) {
  std::vector<int64_t> pairs;
  for (int rank = 0; rank < placement.ranks(); ++rank) {
    int64_t sum = 0;
    for (const int chunk : placement.chunks_of(rank)) {
      const Rows rows = placement.chunk(chunk);
      for (int64_t t = rows.begin; t < rows.end; ++t) sum += t + 1;
    }
    pairs.push_back(sum);
  }
  return pairs;
}

TEST(Placement, CausalWorkIsTheSameForEveryRank) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const std::vector<int64_t> pairs = causal_pairs(Placement(960 * ranks, ranks));
    for (const int64_t n : pairs) EXPECT_EQ(n, pairs[0]) << ranks << " ranks";
  }
}

// A length that 2 n does not divide: a chunk has a row more than another, which is at most this share of a rank's work.
TEST(Placement, UnequalChunksAreNearlyBalanced) {
  for (const int64_t length : {1001, 4093}) {
    const std::vector<int64_t> pairs = causal_pairs(Placement(length, 4));
    const auto [least, most] = std::minmax_element(pairs.begin(), pairs.end());
    EXPECT_LE(*most - *least, 2 * length);  // two rows, of `length` keys at most
  }
}

// At every step of the ring too: a rank never waits for one that has more visible pairs than itself.
TEST(Placement, EachStepIsTheSameWork) {
  const int ranks = 4;
  const int64_t size = 10;
  const Placement placement(2 * ranks * size, ranks);
  for (int step = 0; step < ranks; ++step) {
    std::vector<int64_t> pairs;
    for (int rank = 0; rank < ranks; ++rank) {
      int64_t sum = 0;
      for (const int queries : placement.chunks_of(rank)) {
        for (const int keys : placement.chunks_of((rank - step + ranks) % ranks)) {
          sum += queries > keys ? size * size : queries == keys ? size * (size + 1) / 2 : 0;
        }
      }
      pairs.push_back(sum);
    }
    EXPECT_EQ(pairs, std::vector<int64_t>(ranks, pairs[0])) << "step " << step;
  }
}

TEST(Placement, RowsAreTakenAndPutBack) {
  const int64_t B = 2, H = 3, T = 21, D = 2;
  std::vector<float> numbers(static_cast<size_t>(B * H * T * D)), again(numbers.size());
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  const View<float, 4> whole(numbers.data(), {B, H, T, D}), back(again.data(), {B, H, T, D});
  const Placement placement(T, 3);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> memory(static_cast<size_t>(B * H * placement.rows(rank) * D));
    const View<float, 4> own(memory.data(), {B, H, placement.rows(rank), D});
    take_rows<float>(placement, rank, whole, own);
    EXPECT_EQ(own(1, 2, 0, 1), whole(1, 2, placement.chunk(rank).begin, 1));
    put_rows<float>(placement, rank, own, back);
  }
  EXPECT_EQ(again, numbers);
}

TEST(Placement, BadArgumentsAreNamed) {
  EXPECT_EQ(error_of([] { Placement(-1, 2); }), "placement: length is -1, expected 0 or more");
  EXPECT_EQ(error_of([] { Placement(8, 0); }), "placement: ranks is 0, expected 1 or more");
}

}  // namespace
}  // namespace heed::dist
