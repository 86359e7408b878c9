// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "heed/base/testing.h"
#include "heed/grammar/grammar.h"
#include "heed/grammar/lexicon.h"

namespace heed::grammar {
namespace {

using heed::testing::seeded;

const std::set<std::string_view> kPronouns{"it", "he", "she", "they", "him", "her", "them"};

TEST(Split, HoldsOutCombinationsOfBothKinds) {
  const Split split(seeded(1));
  for (const auto* held_out : {&split.held_out_for_dev(), &split.held_out_for_test()}) {
    const auto pronouns = std::ranges::count_if(*held_out, [](const auto& c) { return kPronouns.contains(c.partner); });
    EXPECT_GT(pronouns, 20);
    EXPECT_GT(static_cast<std::ptrdiff_t>(held_out->size()) - pronouns, 100);
  }
  for (const Combination& c : split.held_out_for_dev()) EXPECT_FALSE(split.held_out_for_test().contains(c));
}

TEST(Split, KeepsTrainingAndTheRestApart) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Split split(seeded(seed));
    Grammar grammar(seeded(seed));
    std::map<Subset, std::set<Combination>> met;
    std::map<Subset, int> sizes;
    for (int n = 0; n < 20000; ++n) {
      const Sentence sentence = grammar.next();
      const auto subset = split.part_of(sentence);
      if (!subset) continue;
      ++sizes[*subset];
      met[*subset].insert(sentence.combinations.begin(), sentence.combinations.end());
    }
    for (const auto* held_out : {&split.held_out_for_dev(), &split.held_out_for_test()}) {
      for (const Combination& c : *held_out) EXPECT_FALSE(met[Subset::train].contains(c)) << c.noun << " " << c.partner;
    }
    EXPECT_GT(sizes[Subset::train], 14000);
    EXPECT_GT(sizes[Subset::dev], 1000);  // over a twentieth: dev and test fill up before training does
    EXPECT_GT(sizes[Subset::test], 1000);
  }
}

// Every sentence of dev and test has something that training never saw, and nothing of the other.
TEST(Split, PutsASentenceWhereItsCombinationsAre) {
  const Split split(seeded(4));
  Grammar grammar(seeded(4));
  int both = 0;
  for (int n = 0; n < 5000; ++n) {
    const Sentence sentence = grammar.next();
    bool dev = false, test = false;
    for (const Combination& c : sentence.combinations) {
      dev |= split.held_out_for_dev().contains(c);
      test |= split.held_out_for_test().contains(c);
    }
    const auto subset = split.part_of(sentence);
    EXPECT_EQ(!subset, dev && test);
    both += !subset;
    EXPECT_EQ(subset.value_or(Subset::train), dev && test ? Subset::train
                                              : dev       ? Subset::dev
                                              : test      ? Subset::test
                                                          : Subset::train);
  }
  EXPECT_GT(both, 0);
}

TEST(Split, LeavesEveryWordMostOfItsCombinations) {
  const Split split(seeded(5));
  const auto lost = [&](std::string_view Combination::*side, std::string_view word, bool pronouns) {
    int64_t count = 0;
    for (const auto* held_out : {&split.held_out_for_dev(), &split.held_out_for_test()}) {
      count += std::ranges::count_if(*held_out, [&](const Combination& c) {
        return c.*side == word && kPronouns.contains(c.partner) == pronouns;
      });
    }
    return count;
  };
  for (const Adjective& adjective : adjectives()) {
    const auto all = std::ranges::count_if(nouns(), [&](const Noun& noun) { return describes(adjective, noun); });
    EXPECT_LE(lost(&Combination::partner, adjective.english, false) * 4, all) << adjective.english;
  }
  for (const Noun& noun : nouns()) {
    const auto all = std::ranges::count_if(adjectives(), [&](const Adjective& a) { return describes(a, noun); });
    EXPECT_LE(lost(&Combination::noun, noun.english, false) * 4, all) << noun.english;
    EXPECT_LE(lost(&Combination::noun, noun.english, true), 1) << noun.english;
  }
}

// What is held out is how words combine, not the words: a model can know them all.
TEST(Split, TrainsOnEveryWordThatIsTested) {
  const Split split(seeded(6));
  Grammar grammar(seeded(6));
  std::set<std::string> trained, tested;
  for (int n = 0; n < 60000; ++n) {
    const Sentence sentence = grammar.next();
    const auto subset = split.part_of(sentence);
    if (!subset) continue;
    std::set<std::string>& words = *subset == Subset::train ? trained : tested;
    words.insert(sentence.source.begin(), sentence.source.end());
    words.insert(sentence.target.begin(), sentence.target.end());
  }
  for (const std::string& word : tested) EXPECT_TRUE(trained.contains(word)) << word;
}

}  // namespace
}  // namespace heed::grammar
