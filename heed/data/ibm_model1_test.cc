// SPDX-License-Identifier: Apache-2.0
#include "heed/data/ibm_model1.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/data/batch.h"

namespace heed::data {
namespace {

using heed::testing::error_of, heed::testing::seeded;

IdPairs ids_of(const std::vector<TokenPair>& pairs, int64_t sources, int64_t targets) {
  IdPairs all(sources, targets);
  for (const TokenPair& pair : pairs) all.add(pair.source, pair.target);
  return all;
}

// The definition, over every pair of tokens: t[e][f], the last row that of the empty word.
using Dense = std::vector<std::vector<double>>;
Dense by_definition(const std::vector<TokenPair>& pairs, size_t sources, size_t targets, int64_t iterations) {
  Dense t(sources + 1, std::vector<double>(targets, 1.0 / static_cast<double>(targets)));
  for (int64_t n = 0; n < iterations; ++n) {
    Dense count(sources + 1, std::vector<double>(targets, 0.0));
    for (const TokenPair& pair : pairs) {
      std::vector<size_t> words{sources};
      words.insert(words.end(), pair.source.begin(), pair.source.end());
      for (const int32_t f : pair.target) {
        const auto to = static_cast<size_t>(f);
        double sum = 0;
        for (const size_t e : words) sum += t[e][to];
        for (const size_t e : words) count[e][to] += t[e][to] / sum;
      }
    }
    for (size_t e = 0; e <= sources; ++e) {
      double sum = 0;
      for (const double c : count[e]) sum += c;
      for (size_t f = 0; f < targets; ++f) t[e][f] = sum > 0 ? count[e][f] / sum : 0;
    }
  }
  return t;
}

std::vector<TokenPair> random_pairs(int64_t pairs, uint64_t sources, uint64_t targets, uint64_t seed) {
  Rng rng(seeded(seed), 1);
  std::vector<TokenPair> all(static_cast<size_t>(pairs));
  for (TokenPair& pair : all) {
    for (uint64_t i = rng.below(6); i > 0; --i) pair.source.push_back(static_cast<int32_t>(rng.below(sources)));
    for (uint64_t i = rng.below(6); i > 0; --i) pair.target.push_back(static_cast<int32_t>(rng.below(targets)));
  }
  return all;
}

TEST(IbmModel1, IsItsDefinition) {
  constexpr size_t kSources = 7, kTargets = 5;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto pairs = random_pairs(30, kSources, kTargets, seed);
    for (const int64_t iterations : {1, 2, 6}) {
      const Dense expected = by_definition(pairs, kSources, kTargets, iterations);
      const TranslationTable table = ibm_model1(ids_of(pairs, kSources, kTargets), {.iterations = iterations});
      ASSERT_EQ(table.rows(), static_cast<int64_t>(kSources) + 1);
      for (int64_t e = 0; e < table.rows(); ++e) {
        std::vector<double> row(kTargets, 0.0);  // what is not in the table is impossible
        for (size_t i = 0; i < table.targets(e).size(); ++i) {
          row[static_cast<size_t>(table.targets(e)[i])] = table.probabilities(e)[i];
        }
        for (size_t f = 0; f < kTargets; ++f) {
          // Below 30 x 6 x 6 x 6 sums of doubles: 6480 x 2^-53 = 7e-13, of a number of at most 1.
          EXPECT_NEAR(row[f], expected[static_cast<size_t>(e)][f], 1e-12) << e << " -> " << f << ", seed " << seed;
        }
      }
    }
  }
}

// The classic: house and book come with the, and EM finds which is which.
TEST(IbmModel1, FindsWhatTranslatesWhat) {
  const std::vector<TokenPair> pairs = {{{0, 1}, {0, 1}}, {{0, 2}, {0, 2}}, {{3, 2}, {3, 2}}};
  const TranslationTable table = ibm_model1(ids_of(pairs, 4, 4), {.iterations = 30});
  for (int64_t e = 0; e < 4; ++e) {
    const auto t = table.probabilities(e);
    const auto best = std::max_element(t.begin(), t.end()) - t.begin();
    EXPECT_EQ(table.targets(e)[static_cast<size_t>(best)], e);
  }
}

TEST(IbmModel1, KeepsTheMostFrequentCandidatesAlone) {
  IdPairs pairs(1, 6);
  for (int32_t f = 0; f < 6; ++f) {
    for (int32_t n = 0; n <= f % 3; ++n) pairs.add(std::vector<int32_t>{0}, std::vector<int32_t>{f});
  }
  const TranslationTable table = ibm_model1(pairs, {.candidates = 3});
  for (const int64_t row : {int64_t{0}, table.empty_word()}) {
    EXPECT_EQ(std::vector<int32_t>(table.targets(row).begin(), table.targets(row).end()),
              (std::vector<int32_t>{1, 2, 5}));  // three times, three times, and of those that come twice the first
    double sum = 0;
    for (const double t : table.probabilities(row)) sum += t;
    EXPECT_NEAR(sum, 1, 1e-15 * 3);
  }
}

TEST(IbmModel1, HasNoRowsOfWhatNeverCame) {
  const TranslationTable table = ibm_model1(IdPairs(3, 3));
  ASSERT_EQ(table.rows(), 4);
  for (int64_t e = 0; e < 4; ++e) EXPECT_TRUE(table.targets(e).empty());
}

TEST(IbmModel1, SaysWhatDoesNotFit) {
  IdPairs pairs(3, 4);
  EXPECT_EQ(error_of([&] { pairs.add(std::vector<int32_t>{3}, std::vector<int32_t>{}); }),
            "pairs: an id of the source is 3, expected 0 to 2");
  EXPECT_EQ(error_of([&] { pairs.add(std::vector<int32_t>{}, std::vector<int32_t>{-1}); }),
            "pairs: an id of the target is -1, expected 0 to 3");
  EXPECT_EQ(error_of([&] { ibm_model1(pairs, {.iterations = 0}); }),
            "ibm_model1: iterations is 0, expected an integer in [1, 1000]");
  Cancel cancel;
  cancel.request();
  EXPECT_THROW(ibm_model1(pairs, {}, &cancel), Cancelled);
}

}  // namespace
}  // namespace heed::data
