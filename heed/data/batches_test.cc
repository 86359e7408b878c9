// SPDX-License-Identifier: Apache-2.0
#include "heed/data/batches.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/data/shuffle.h"

namespace heed::data {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using text::Corpus, text::Pair, text::kBegin, text::kEnd, text::kPad;

// A token a letter: 'a' is 4.
class Letters final : public text::Tokenizer {
 public:
  text::TokenizerKind kind() const override { return text::TokenizerKind::characters; }
  int64_t size() const override { return 30; }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(4 + c - 'a');
    return ids;
  }
  std::string decode(std::span<const int32_t>) const override { return ""; }
  std::string piece(int32_t) const override { return ""; }
  void save(const std::string&) const override {}
};

Corpus random_corpus(int64_t pairs, uint64_t longest, uint64_t seed) {
  Rng rng(seeded(seed));
  const auto word = [&] {
    std::string text(1 + rng.below(longest), 'a');
    for (char& c : text) c = static_cast<char>('a' + rng.below(26));
    return text;
  };
  Corpus corpus;
  for (int64_t i = 0; i < pairs; ++i) corpus.pairs.push_back({word(), word(), i + 1});
  return corpus;
}

Batches batches_of(const Corpus& corpus, const BatchOptions& options) {
  return {corpus, Letters(), Letters(), options};
}

// Every row is its pair of the corpus, and the padding is only behind it.
void check_rows(const Batch& batch, const Corpus& corpus) {
  const Letters letters;
  int64_t tokens = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const Pair& pair = corpus.pairs.at(batch.items.at(row));
    std::vector<int32_t> source = letters.encode(pair.source), out = letters.encode(pair.target), in = out;
    source.push_back(kEnd), out.push_back(kEnd), in.insert(in.begin(), kBegin);
    EXPECT_EQ(batch.source_lengths.at(row), source.size());
    EXPECT_EQ(batch.target_lengths.at(row), out.size());
    tokens += out.size();
    source.resize(batch.source_length, kPad), in.resize(batch.target_length, kPad),
        out.resize(batch.target_length, kPad);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), batch.source.begin() + row * batch.source_length));
    EXPECT_TRUE(std::equal(in.begin(), in.end(), batch.target_in.begin() + row * batch.target_length));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), batch.target_out.begin() + row * batch.target_length));
  }
  EXPECT_EQ(batch.target_tokens, tokens);
  EXPECT_EQ(batch.source.size(), batch.rows * batch.source_length);
  EXPECT_EQ(batch.target_in.size(), batch.rows * batch.target_length);
  EXPECT_EQ(batch.target_out.size(), batch.rows * batch.target_length);
}

RC_GTEST_PROP(Batches, AnEpochHasEveryPairOnceWithinTheBudget, ()) {
  const auto pairs = *rc::gen::inRange<int64_t>(1, 200);
  const auto longest = *rc::gen::inRange<uint64_t>(1, 60);
  const BatchOptions options{.tokens = *rc::gen::inRange<int64_t>(8, 300),
                             .max_length = *rc::gen::inRange<int64_t>(2, 70),
                             .seed = *rc::gen::arbitrary<uint64_t>()};
  const int64_t epoch = *rc::gen::inRange<int64_t>(0, 1000);
  Corpus corpus = random_corpus(pairs, longest, options.seed);
  corpus.pairs.push_back({"a", "b", pairs + 1});  // so that one is left
  const Batches batches = batches_of(corpus, options);
  std::set<int64_t> used;
  for (int64_t n = 0; n < batches.size(); ++n) {
    const Batch batch = batches.at(epoch, n);
    RC_ASSERT(batch.rows > 0);
    RC_ASSERT(batch.rows * std::max(batch.source_length, batch.target_length) <= options.tokens);
    RC_ASSERT(std::max(batch.source_length, batch.target_length) <= options.max_length);
    check_rows(batch, corpus);
    for (const int64_t pair : batch.items) RC_ASSERT(used.insert(pair).second);
  }
  RC_ASSERT(static_cast<int64_t>(used.size()) == batches.pairs());
  RC_ASSERT(batches.pairs() + batches.left_out() == static_cast<int64_t>(corpus.pairs.size()));
}

TEST(Batches, ABatchIsAFunctionOfEpochAndNumber) {
  const Corpus corpus = random_corpus(500, 30, 1);
  const Batches a = batches_of(corpus, {.tokens = 200}), b = batches_of(corpus, {.tokens = 200});
  const Batches other = batches_of(corpus, {.tokens = 200, .seed = seeded(2)});
  int64_t same_epoch = 0, same_seed = 0;
  for (int64_t n = a.size() - 1; n >= 0; --n) {  // from the end: nothing depends on what was asked before
    EXPECT_EQ(a.at(3, n).items, b.at(3, n).items);
    same_epoch += a.at(3, n).items == a.at(4, n).items;
    same_seed += a.at(3, n).items == other.at(3, n).items;
  }
  EXPECT_LT(same_epoch, a.size() / 10);
  EXPECT_LT(same_seed, a.size() / 10);
}

// A length that fits one batch has the same members always, and what is left of a length may be one pair or two, and so
// the same by chance. The rarest length here has a 16th of the pairs, some 62, of which 25 fit a batch: eight of them
// are the same eight once in three billion draws.
TEST(Batches, MembersChangeWithTheEpoch) {
  constexpr int64_t kRows = 8;
  const Corpus corpus = random_corpus(1000, 4, 1);
  const Batches batches = batches_of(corpus, {.tokens = 50});
  std::set<std::set<int64_t>> first;
  for (int64_t n = 0; n < batches.size(); ++n) {
    const Batch batch = batches.at(0, n);
    first.emplace(batch.items.begin(), batch.items.end());
  }
  int64_t same = 0, compared = 0;
  for (int64_t n = 0; n < batches.size(); ++n) {
    const Batch batch = batches.at(1, n);
    if (batch.rows < kRows) continue;
    ++compared;
    same += first.contains({batch.items.begin(), batch.items.end()});
  }
  EXPECT_EQ(same, 0);
  EXPECT_GT(compared, batches.size() / 2);
}

TEST(Batches, InOrderGoesFromShortToLong) {
  const Corpus corpus = random_corpus(300, 80, 5);
  const Batches batches = batches_of(corpus, {.tokens = 256});
  std::set<int64_t> used;
  size_t last = 0;
  for (const Batch& batch : batches.in_order()) {
    check_rows(batch, corpus);
    for (const int64_t pair : batch.items) {
      const size_t length = std::max(corpus.pairs[pair].source.size(), corpus.pairs[pair].target.size());
      EXPECT_LE(last, length);
      last = length;
      EXPECT_TRUE(used.insert(pair).second);
    }
  }
  EXPECT_EQ(used.size(), corpus.pairs.size());
}

// Lengths up to 80, so a bucket spans up to 8 of 64: on the longer side at most 1/8 of a row, and 1/80 of the batch
// where two buckets meet, can be padding.
TEST(Batches, LittleIsPadding) {
  const Corpus corpus = random_corpus(20000, 80, 7);
  const Batches batches = batches_of(corpus, {.tokens = 4096});
  int64_t room = 0, real = 0;
  for (int64_t n = 0; n < batches.size(); ++n) {
    const Batch batch = batches.at(0, n);
    room += batch.rows * std::max(batch.source_length, batch.target_length);
    for (int64_t row = 0; row < batch.rows; ++row)
      real += std::max(batch.source_lengths[row], batch.target_lengths[row]);
  }
  EXPECT_GT(static_cast<double>(real), 0.85 * static_cast<double>(room));
  EXPECT_LT(static_cast<double>(batches.size()), 1.2 * static_cast<double>(room) / 4096);  // batches are full
}

TEST(Batches, ALanguageModelHasNoSource) {
  Corpus corpus;
  corpus.pairs = {{"", "abc", 1}, {"", "ab", 2}};
  const Batches batches = batches_of(corpus, {});
  ASSERT_EQ(batches.size(), 1);
  const Batch batch = batches.in_order().at(0);
  EXPECT_EQ(batch.source_length, 0);
  EXPECT_TRUE(batch.source.empty());
  EXPECT_EQ(batch.source_lengths, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(batch.target_in, (std::vector<int32_t>{kBegin, 4, 5, kPad, kBegin, 4, 5, 6}));
  EXPECT_EQ(batch.target_out, (std::vector<int32_t>{4, 5, kEnd, kPad, 4, 5, 6, kEnd}));
  EXPECT_EQ(batch.target_tokens, 7);
}

TEST(Batches, LongPairsAreLeftOut) {
  Corpus corpus;
  corpus.pairs = {{"abc", "a", 1}, {"a", "abcd", 2}, {"abcd", "a", 3}};
  const Batches batches = batches_of(corpus, {.max_length = 4});
  EXPECT_EQ(batches.pairs(), 1);
  EXPECT_EQ(batches.left_out(), 2);
  EXPECT_EQ(batches_of(corpus, {.tokens = 4}).left_out(), 2);  // none fits a batch
  EXPECT_EQ(error_of([&] { batches_of(corpus, {.max_length = 3}); }), "batches: none of 3 pairs has at most 3 tokens");
}

TEST(Batches, ErrorsNameWhatIsWrong) {
  const Corpus corpus = random_corpus(3, 5, 1);
  EXPECT_EQ(error_of([&] { batches_of({}, {}); }), "batches: none of 0 pairs has at most 256 tokens");
  EXPECT_EQ(error_of([&] { batches_of(corpus, {.tokens = 0}); }), "batches: tokens is 0, expected at least 1");
  EXPECT_EQ(error_of([&] { batches_of(corpus, {.max_length = -1}); }),
            "batches: max_length is -1, expected at least 1");
  const Batches batches = batches_of(corpus, {});
  EXPECT_EQ(error_of([&] { batches.at(0, 1); }),
            "batches: epoch is 0 and batch 1, expected an epoch from 0 and a batch below 1");
  EXPECT_EQ(error_of([&] { batches.at(-1, 0); }),
            "batches: epoch is -1 and batch 0, expected an epoch from 0 and a batch below 1");
}

// A corpus larger than memory: from a file, and with ids in a file, the batches are the same.
TEST(Batches, ACorpusMayLieInFiles) {
  const Corpus corpus = random_corpus(300, 12, 7);
  const heed::testing::TemporaryFolder folder;
  {
    std::ofstream file(folder.file("pairs.tsv"));
    for (const Pair& pair : corpus.pairs) file << pair.source << "\t" << pair.target << "\n";
  }
  const BatchOptions options{.tokens = 64, .seed = seeded(5)};
  const Batches expected = batches_of(corpus, options);
  for (const int64_t memory : {int64_t{1} << 20, int64_t{1000}, int64_t{0}}) {
    BatchOptions spilling = options;
    spilling.memory = memory;
    const Batches got(text::TsvFile(folder.file("pairs.tsv"), {}), Letters(), Letters(), spilling);
    ASSERT_EQ(got.size(), expected.size());
    for (int64_t n = 0; n < got.size(); ++n) {
      const Batch a = got.at(1, n), b = expected.at(1, n);
      EXPECT_EQ(a.source, b.source);
      EXPECT_EQ(a.target_in, b.target_in);
      EXPECT_EQ(a.target_out, b.target_out);
      EXPECT_EQ(a.items, b.items);
    }
  }
}

TEST(Batches, IdsAreBatchesToo) {
  const Corpus corpus = random_corpus(50, 9, 3);
  std::vector<TokenPair> pairs;
  for (const Pair& pair : corpus.pairs) pairs.push_back({Letters().encode(pair.source), Letters().encode(pair.target)});
  const Batches a = batches_of(corpus, {.tokens = 64}), b(pairs, {.tokens = 64});
  ASSERT_EQ(a.size(), b.size());
  for (int64_t n = 0; n < a.size(); ++n) {
    EXPECT_EQ(a.at(2, n).source, b.at(2, n).source);
    EXPECT_EQ(a.at(2, n).target_out, b.at(2, n).target_out);
  }
}

TEST(Batches, TagsAreAsManyAsTokens) {
  Corpus corpus;
  corpus.pairs = {{"abc", "xyz", 1}, {"ab", "xyz", 7}};
  EXPECT_EQ(batches_of(corpus, {}).pairs(), 2);
  EXPECT_EQ(error_of([&] { batches_of(corpus, {.tags = true}); }), "line 7: 2 tokens and 3 tags, expected as many");
  const heed::testing::TemporaryFolder folder;
  std::ofstream(folder.file("tags.tsv")) << "ab\txy\nabc\tx\n";
  EXPECT_EQ(
      error_of([&] { Batches(text::TsvFile(folder.file("tags.tsv"), {}), Letters(), Letters(), {.tags = true}); }),
      folder.file("tags.tsv") + ":2: 3 tokens and 1 tags, expected as many");
}

TEST(IdStore, GoesToAFileBeyondItsMemory) {
  IdStore small(8), large(1 << 20);
  for (int32_t i = 0; i < 100; i += 2) {
    const int32_t ids[] = {i, i + 1};
    small.append(ids);
    large.append(ids);
  }
  small.finish(), large.finish();
  EXPECT_TRUE(small.in_a_file());
  EXPECT_FALSE(large.in_a_file());
  EXPECT_EQ(small.size(), 100);
  for (int32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(*small.at(i), i);
    EXPECT_EQ(*large.at(i), i);
  }
}

TEST(Shuffle, IsAPermutation) {
  for (int64_t size = 1; size < 300; ++size) {
    const Shuffle shuffle(size, seeded(3), size, 1);
    std::set<int64_t> places;
    for (int64_t i = 0; i < size; ++i) places.insert(shuffle(i));
    EXPECT_EQ(places.size(), size);
    EXPECT_EQ(*places.begin(), 0);
    EXPECT_EQ(*places.rbegin(), size - 1);
  }
}

// All 24 orders of four come as often: chi-square with 23 degrees of freedom exceeds 90 once in a billion draws.
TEST(Shuffle, AllOrdersComeAsOften) {
  constexpr int64_t kEpochs = 24000;
  for (const uint64_t seed : {1u, 2u, 3u}) {
    std::map<std::vector<int64_t>, int64_t> orders;
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const Shuffle shuffle(4, seeded(seed), epoch, 0);
      ++orders[{shuffle(0), shuffle(1), shuffle(2), shuffle(3)}];
    }
    ASSERT_EQ(orders.size(), 24u);
    double chi_square = 0;
    for (const auto& [order, count] : orders) {
      const double expected = kEpochs / 24.0, off = static_cast<double>(count) - expected;
      chi_square += off * off / expected;
    }
    EXPECT_LT(chi_square, 90) << seed;
  }
}

}  // namespace
}  // namespace heed::data
