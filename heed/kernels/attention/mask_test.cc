// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/base/error.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::kernels {
namespace {

using Picture = std::vector<std::string>;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr int64_t kTiny = std::numeric_limits<int64_t>::min();

// One string a query, batch after batch; '#' where a key is seen.
Picture picture(const Visibility& visibility, int64_t B, int64_t T, int64_t S) {
  Picture rows;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      const KeyRange row = visibility.row(b, t);
      EXPECT_TRUE(0 <= row.begin && row.begin <= row.end && row.end <= S);
      std::string& line = rows.emplace_back(static_cast<size_t>(S), '.');
      for (int64_t s = row.begin; s < row.end; ++s) line[static_cast<size_t>(s)] = '#';
    }
  }
  return rows;
}

Picture picture(const Mask& mask, int64_t B, int64_t T, int64_t S) {
  return picture(Visibility(mask, B, T, S), B, T, S);
}

std::string error_of(const Mask& mask, int64_t B, int64_t T, int64_t S) {
  try {
    Visibility(mask, B, T, S);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Mask, NoneSeesEverything) {
  EXPECT_EQ(picture(Mask{}, 2, 2, 3), (Picture{"###", "###", "###", "###"}));
  const Visibility visibility({}, 2, 2, 3);
  EXPECT_TRUE(visibility.everything());
  EXPECT_FALSE(visibility.causal());
  EXPECT_EQ(visibility.pairs(), 12);
}

TEST(Mask, CausalNamesItsAlignment) {
  EXPECT_EQ(picture(Causal::top_left(), 1, 3, 5), (Picture{"#....", "##...", "###.."}));
  EXPECT_EQ(picture(Causal::bottom_right(), 1, 3, 5), (Picture{"###..", "####.", "#####"}));
  EXPECT_EQ(picture(Causal::offset(1), 1, 3, 5), (Picture{"##...", "###..", "####."}));
  EXPECT_EQ(picture(Causal::offset(-2), 1, 3, 5), (Picture{".....", ".....", "#...."}));
}

TEST(Mask, CausalWithMoreQueriesThanKeys) {
  EXPECT_EQ(picture(Causal::top_left(), 1, 5, 2), (Picture{"#.", "##", "##", "##", "##"}));
  EXPECT_EQ(picture(Causal::bottom_right(), 1, 5, 2), (Picture{"..", "..", "..", "#.", "##"}));
}

TEST(Mask, WindowNamesItsAlignment) {
  EXPECT_EQ(picture(Window::top_left(1, 0), 1, 4, 5), (Picture{"#....", "##...", ".##..", "..##."}));
  EXPECT_EQ(picture(Window::top_left(0, 2), 1, 4, 5), (Picture{"###..", ".###.", "..###", "...##"}));
  EXPECT_EQ(picture(Window::bottom_right(1, 0), 1, 3, 5), (Picture{".##..", "..##.", "...##"}));
  EXPECT_EQ(picture(Window::offset(-1, 0, 0), 1, 3, 3), (Picture{"...", "#..", ".#."}));
  EXPECT_EQ(picture(Window::offset(2, 0, 0), 1, 3, 3), (Picture{"..#", "...", "..."}));
}

TEST(Mask, WindowUnboundedOnOneSide) {
  EXPECT_EQ(picture(Window::top_left(Window::kUnbounded, 1), 1, 3, 4), (Picture{"##..", "###.", "####"}));
  EXPECT_EQ(picture(Window::top_left(1, Window::kUnbounded), 1, 3, 4), (Picture{"####", "####", ".###"}));
  EXPECT_TRUE(Visibility(Window::top_left(Window::kUnbounded, Window::kUnbounded), 1, 3, 4).everything());
}

TEST(Mask, LengthsHidePadding) {
  const std::vector<int64_t> lengths{2, 0, 3};
  EXPECT_EQ(picture(Lengths{lengths}, 3, 2, 3), (Picture{"##.", "##.", "...", "...", "###", "###"}));
}

TEST(Mask, BottomRightCountsFromTheLengthOfTheBatch) {
  const std::vector<int64_t> lengths{4, 2, 0};
  EXPECT_EQ(picture({Causal::bottom_right(), Lengths{lengths}}, 3, 3, 4), (Picture{"##..", "###.", "####",  //
                                                                                   "....", "#...", "##..",  //
                                                                                   "....", "....", "...."}));
  EXPECT_EQ(picture({Lengths{lengths}, Window::bottom_right(0, 0)}, 3, 2, 4), (Picture{"..#.", "...#",  //
                                                                                       "#...", ".#..",  //
                                                                                       "....", "...."}));
}

TEST(Mask, PackedSequencesSeeOnlyThemselves) {
  const std::vector<int64_t> queries{0, 2, 3}, keys{0, 1, 4};
  // The last query and the last key belong to no sequence.
  EXPECT_EQ(picture(Packed{queries, keys}, 1, 4, 5), (Picture{"#....", "#....", ".###.", "....."}));
}

TEST(Mask, PackedAlignmentsCountFromTheSequence) {
  const std::vector<int64_t> queries{0, 2, 4}, keys{0, 3, 6};
  EXPECT_EQ(picture({Packed{queries, keys}, Causal::top_left()}, 1, 4, 6),
            (Picture{"#.....", "##....", "...#..", "...##."}));
  EXPECT_EQ(picture({Packed{queries, keys}, Causal::bottom_right()}, 1, 4, 6),
            (Picture{"##....", "###...", "...##.", "...###"}));
  EXPECT_EQ(picture({Packed{queries, keys}, Window::bottom_right(0, 0)}, 1, 4, 6),
            (Picture{".#....", "..#...", "....#.", ".....#"}));
}

TEST(Mask, PackedSequencesMayBeEmpty) {
  // Sequences of 0, 2, 0 and 1 queries over 1, 0, 1 and 2 keys.
  const std::vector<int64_t> queries{0, 0, 2, 2, 3}, keys{0, 1, 1, 2, 4};
  EXPECT_EQ(picture(Packed{queries, keys}, 1, 3, 4), (Picture{"....", "....", "..##"}));
  const std::vector<int64_t> none{0};
  EXPECT_EQ(picture(Packed{none, none}, 1, 2, 2), (Picture{"..", ".."}));
}

TEST(Mask, LengthsOverPackedHideKeysAndMoveNoAlignment) {
  const std::vector<int64_t> queries{0, 2, 4}, keys{0, 3, 6}, length{4};
  EXPECT_EQ(picture({Packed{queries, keys}, Lengths{length}}, 1, 4, 6),
            (Picture{"###...", "###...", "...#..", "...#.."}));
  EXPECT_EQ(picture({Packed{queries, keys}, Lengths{length}, Window::bottom_right(1, 0)}, 1, 4, 6),
            (Picture{"##....", ".##...", "...#..", "......"}));
  const std::vector<int64_t> short_length{2};  // ends inside the first sequence
  EXPECT_EQ(picture({Packed{queries, keys}, Lengths{short_length}}, 1, 4, 6),
            (Picture{"##....", "##....", "......", "......"}));
}

TEST(Mask, CausalAndWindowIntersectEachWithItsOwnAlignment) {
  EXPECT_EQ(picture({Causal::top_left(), Window::top_left(1, 1)}, 1, 4, 4), (Picture{"#...", "##..", ".##.", "..##"}));
  EXPECT_EQ(picture({Causal::top_left(), Window::offset(2, 2, 0)}, 1, 3, 4), (Picture{"#...", ".#..", "..#."}));
  EXPECT_EQ(picture({Causal::offset(-2), Window::top_left(0, 0)}, 1, 3, 3), (Picture{"...", "...", "..."}));
}

TEST(Mask, EachConstraintAtMostOnce) {
  static_assert(std::is_constructible_v<Mask, Causal, Window, Lengths, Packed>);
  static_assert(std::is_constructible_v<Mask, Packed, Causal>);
  static_assert(!std::is_constructible_v<Mask, Causal, Causal>);
  static_assert(!std::is_constructible_v<Mask, int>);
}

TEST(Mask, EmptySizes) {
  EXPECT_EQ(Visibility({}, 0, 3, 3).pairs(), 0);
  EXPECT_EQ(Visibility(Causal::bottom_right(), 2, 0, 3).pairs(), 0);
  EXPECT_EQ(picture(Causal::bottom_right(), 1, 2, 0), (Picture{"", ""}));
  EXPECT_EQ(Visibility().pairs(), 0);
}

TEST(Mask, HugeOffsetsSaturate) {
  const Picture all{"###", "###"}, none{"...", "..."};
  EXPECT_EQ(picture(Causal::offset(kHuge), 1, 2, 3), all);
  EXPECT_EQ(picture(Causal::offset(kTiny), 1, 2, 3), none);
  EXPECT_EQ(picture(Window::offset(kHuge, 5, 5), 1, 2, 3), none);
  EXPECT_EQ(picture(Window::offset(kTiny, 5, 5), 1, 2, 3), none);
  EXPECT_EQ(picture(Window::offset(kHuge, 0, 0), 1, 2, 3), none);
  EXPECT_EQ(picture(Window::offset(kTiny, 0, 0), 1, 2, 3), none);
  // An unbounded side has no bound, whatever the query's position.
  EXPECT_EQ(picture(Window::offset(kHuge, Window::kUnbounded, 0), 1, 2, 3), all);
  EXPECT_EQ(picture(Window::offset(kTiny, 0, Window::kUnbounded), 1, 2, 3), all);
  // A bounded one is exact to the last key.
  EXPECT_EQ(picture(Window::offset(kHuge, kHuge - 1, 0), 1, 2, 3), (Picture{".##", "..#"}));
  EXPECT_EQ(picture(Window::offset(-kHuge, 0, kHuge - 1), 1, 2, 3), (Picture{"...", "#.."}));
}

TEST(Mask, EverythingMeansInEffect) {
  const std::vector<int64_t> full{3, 3}, partial{3, 2};
  EXPECT_TRUE(Visibility(Lengths{full}, 2, 2, 3).everything());
  EXPECT_FALSE(Visibility(Lengths{partial}, 2, 2, 3).everything());
  // One query at the end of its cache, as in decoding.
  EXPECT_TRUE(Visibility(Causal::bottom_right(), 2, 1, 3).everything());
  EXPECT_FALSE(Visibility(Causal::bottom_right(), 2, 1, 3).causal());
  EXPECT_FALSE(Visibility(Causal::bottom_right(), 2, 2, 3).everything());
  EXPECT_TRUE(Visibility(Causal::bottom_right(), 2, 2, 3).causal());
}

TEST(Mask, OwnsWhatItNeeds) {
  std::vector<int64_t> lengths{1, 2};
  const Visibility visibility(Lengths{lengths}, 2, 1, 2);
  lengths = {0, 0};
  EXPECT_EQ(picture(visibility, 2, 1, 2), (Picture{"#.", "##"}));
}

TEST(Mask, PairsOfLongSequencesAreCountedAtOnce) {
  const int64_t T = int64_t{1} << 30;
  EXPECT_EQ(Visibility(Causal::top_left(), 1, T, T).pairs(), T / 2 * (T + 1));
  EXPECT_EQ(Visibility(Window::top_left(1, 1), 1, T, T).pairs(), 3 * T - 2);
}

TEST(Mask, ErrorsOfLengths) {
  const std::vector<int64_t> three{1, 2, 3}, large{8, 9}, negative{-1, 0};
  EXPECT_EQ(error_of(Lengths{three}, 2, 4, 8), "attention: lengths has 3 entries, expected 2 (B)");
  EXPECT_EQ(error_of(Lengths{large}, 2, 4, 8), "attention: lengths[1] is 9, expected 0 to 8 (S)");
  EXPECT_EQ(error_of(Lengths{negative}, 2, 4, 8), "attention: lengths[0] is -1, expected 0 to 8 (S)");
}

TEST(Mask, ErrorsOfWindow) {
  EXPECT_EQ(error_of(Window::top_left(-1, 0), 1, 4, 8), "attention: window.left is -1, expected 0 or more");
  EXPECT_EQ(error_of(Window::bottom_right(0, -2), 1, 4, 8), "attention: window.right is -2, expected 0 or more");
}

TEST(Mask, ErrorsOfPacked) {
  const std::vector<int64_t> good{0, 4, 8}, late{1, 4, 8}, falling{0, 5, 3}, far{0, 4, 9}, four{0, 1, 2, 3}, none;
  EXPECT_EQ(error_of(Packed{good, good}, 2, 8, 8), "attention: packed sequences need B = 1, got B = 2");
  EXPECT_EQ(error_of(Packed{good, four}, 1, 8, 8),
            "attention: packed.queries has 3 entries and packed.keys has 4, expected the same number");
  EXPECT_EQ(error_of(Packed{none, none}, 1, 8, 8), "attention: packed.queries has 0 entries, expected at least 1");
  EXPECT_EQ(error_of(Packed{late, good}, 1, 8, 8), "attention: packed.queries begins at 1, expected 0");
  EXPECT_EQ(error_of(Packed{good, late}, 1, 8, 8), "attention: packed.keys begins at 1, expected 0");
  EXPECT_EQ(error_of(Packed{good, falling}, 1, 8, 8),
            "attention: packed.keys[2] is 3, expected at least 5 (packed.keys[1])");
  EXPECT_EQ(error_of(Packed{far, good}, 1, 8, 8), "attention: packed.queries ends at 9, expected at most 8 (T)");
  EXPECT_EQ(error_of(Packed{good, far}, 1, 8, 8), "attention: packed.keys ends at 9, expected at most 8 (S)");
  EXPECT_EQ(error_of(Packed{good, good}, 1, 8, 8), "no error");
}

// The definitions of mask.h, word by word, for one pair.
bool sees(const Mask& mask, int64_t b, int64_t t, int64_t s, int64_t T, int64_t S) {
  if (mask.lengths && s >= mask.lengths->keys[b]) return false;
  if (mask.packed) {
    const auto& [queries, keys] = *mask.packed;
    for (size_t i = 0; i + 1 < queries.size(); ++i) {
      if (t < queries[i] || t >= queries[i + 1]) continue;
      if (s < keys[i] || s >= keys[i + 1]) return false;
      Mask alone = mask;
      alone.lengths.reset();
      alone.packed.reset();
      return sees(alone, 0, t - queries[i], s - keys[i], queries[i + 1] - queries[i], keys[i + 1] - keys[i]);
    }
    return false;
  }
  const int64_t length = mask.lengths ? mask.lengths->keys[b] : S;
  const auto place = [&](const MaskAlignment& align) {
    return t + (align.kind == MaskAlignment::Kind::bottom_right ? length - T : align.offset);
  };
  if (mask.causal && s > place(mask.causal->align)) return false;
  if (mask.window) {
    const auto& [left, right, align] = *mask.window;
    const int64_t p = place(align);
    if (left != Window::kUnbounded && s < p - left) return false;
    if (right != Window::kUnbounded && s > p + right) return false;
  }
  return true;
}

std::vector<int64_t> random_cumulative(size_t sequences, int64_t limit) {
  auto list = *rc::gen::container<std::vector<int64_t>>(sequences, rc::gen::inRange<int64_t>(0, limit + 1));
  list.push_back(0);
  std::sort(list.begin(), list.end());
  return list;
}

MaskAlignment random_alignment() {
  return {*rc::gen::element(MaskAlignment::Kind::offset, MaskAlignment::Kind::bottom_right),
          *rc::gen::inRange<int64_t>(-12, 13)};
}

int64_t random_reach() { return *rc::gen::oneOf(rc::gen::inRange<int64_t>(0, 10), rc::gen::just(Window::kUnbounded)); }

RC_GTEST_PROP(MaskProperty, RowsPairsAndEverythingAreAsDefined, ()) {
  const auto T = *rc::gen::inRange<int64_t>(0, 10), S = *rc::gen::inRange<int64_t>(0, 10);
  const bool packed = *rc::gen::arbitrary<bool>();
  const int64_t B = packed ? 1 : *rc::gen::inRange<int64_t>(0, 4);
  const auto sequences = *rc::gen::inRange<size_t>(0, 5);
  const auto queries = random_cumulative(sequences, T), keys = random_cumulative(sequences, S);
  const auto lengths = *rc::gen::container<std::vector<int64_t>>(B, rc::gen::inRange<int64_t>(0, S + 1));

  Mask mask;
  if (packed) mask.packed = Packed{queries, keys};
  if (*rc::gen::arbitrary<bool>()) mask.lengths = Lengths{lengths};
  if (*rc::gen::arbitrary<bool>()) mask.causal = Causal{random_alignment()};
  if (*rc::gen::arbitrary<bool>()) mask.window = Window{random_reach(), random_reach(), random_alignment()};

  const Visibility visibility(mask, B, T, S);
  int64_t pairs = 0;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      const KeyRange row = visibility.row(b, t);
      RC_ASSERT(0 <= row.begin && row.begin <= row.end && row.end <= S);
      for (int64_t s = 0; s < S; ++s) {
        RC_ASSERT((row.begin <= s && s < row.end) == sees(mask, b, t, s, T, S));
      }
      pairs += row.end - row.begin;
    }
  }
  RC_ASSERT(visibility.pairs() == pairs);
  RC_ASSERT(visibility.everything() == (pairs == B * T * S));
}

}  // namespace
}  // namespace heed::kernels
