// SPDX-License-Identifier: Apache-2.0
#include "heed/data/batch.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"

namespace heed::data {
namespace {

using heed::testing::error_of;
using text::kBegin, text::kEnd, text::kPad;
using Ids = std::vector<int32_t>;
using Lengths = std::vector<int64_t>;

TEST(SourceBatch, PadsAndEnds) {
  const std::vector<Ids> sources = {{7, 8}, {}, {9}};
  const Batch batch = source_batch(sources);
  EXPECT_EQ(batch.rows, 3);
  EXPECT_EQ(batch.source_length, 3);
  EXPECT_EQ(batch.source, (Ids{7, 8, kEnd, kEnd, kPad, kPad, 9, kEnd, kPad}));
  EXPECT_EQ(batch.source_lengths, (Lengths{3, 1, 2}));
  EXPECT_EQ(batch.items, (Lengths{0, 1, 2}));
  EXPECT_EQ(batch.target_length, 0);
  EXPECT_EQ(source_batch({}).rows, 0);
}

TEST(SourceBatch, TakesOtherSpecialTokens) {
  const std::vector<Ids> sources = {{7, 8}, {9}}, targets = {{5}, {}};
  const text::SpecialTokens special{.pad = 50, .begin = 51, .end = 52};
  Batch batch = source_batch(sources, special);
  add_targets(batch, targets, special);
  EXPECT_EQ(batch.source, (Ids{7, 8, 52, 9, 52, 50}));
  EXPECT_EQ(batch.target_in, (Ids{51, 5, 51, 50}));
  EXPECT_EQ(batch.target_out, (Ids{5, 52, 52, 50}));
  EXPECT_EQ(batch.pad, 50);
  EXPECT_EQ(error_of([&] { add_targets(batch, {targets.data(), 1}); }), "batch: 1 targets came, expected 2");
}

TEST(PairBatch, HasTheChosenPairsInTheirOrder) {
  const std::vector<TokenPair> pairs = {{{4}, {5, 6}}, {{7, 8}, {9}}, {{3}, {3}}};
  const Batch batch = pair_batch(pairs, std::vector<size_t>{1, 0});
  EXPECT_EQ(batch.source, (Ids{7, 8, kEnd, 4, kEnd, kPad}));
  EXPECT_EQ(batch.target_in, (Ids{kBegin, 9, kPad, kBegin, 5, 6}));
  EXPECT_EQ(batch.target_out, (Ids{9, kEnd, kPad, 5, 6, kEnd}));
  EXPECT_EQ(batch.items, (Lengths{1, 0}));
  EXPECT_EQ(batch.target_tokens, 5);
}

TEST(PairBatch, ALanguageModelHasNoSource) {
  const std::vector<TokenPair> pairs = {{{}, {5, 6}}, {{}, {9}}};
  const Batch batch = pair_batch(pairs, std::vector<size_t>{0, 1});
  EXPECT_EQ(batch.source_length, 0);
  EXPECT_EQ(batch.source_lengths, (Lengths{0, 0}));
  EXPECT_FALSE(source_tokens(batch).ids);
  EXPECT_EQ(target_tokens(batch).ids.shape(), (Shape{2, 3}));
  EXPECT_EQ(labels(batch).to_doubles(), (std::vector<double>{5, 6, kEnd, 9, kEnd, kPad}));
  EXPECT_FALSE(target_tokens(batch, models::Task::tag).ids);
}

}  // namespace
}  // namespace heed::data
