// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/counterparts.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/grammar/grammar.h"

namespace heed::grammar {
namespace {

using heed::testing::seeded;

Sentence tired() {
  return sentence_of("The animal didn't cross the street because it was too tired.",
                     "El animal no cruzó la calle porque estaba demasiado cansado.",
                     "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7p7 8-7 9-8 10-9 11-10", "7-1",
                     "DET NOUN AUX VERB DET NOUN SCONJ PRON AUX ADV ADJ PUNCT");
}

// Where two sentences of as many words differ; -1: nowhere, -2: in several places.
int difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  int place = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b.at(i)) place = place == -1 ? static_cast<int>(i) : -2;
  }
  return place;
}

TEST(Counterparts, OfTheDemosSentenceIsItsOtherOne) {
  const Sentence sentence = tired();
  const std::vector<AgreeingWord> words = agreeing_words(sentence);
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(rival_of(sentence, sentence.referents[0]), 5);
  const auto other = with_other_adjective(sentence, words[0]);
  ASSERT_TRUE(other);
  EXPECT_EQ(join(*other), "The animal didn't cross the street because it was too wide .");
}

TEST(Counterparts, AreNoneWhereThereIsNothingToChange) {
  Sentence sentence = tired();
  const AgreeingWord word = agreeing_words(sentence)[0];
  EXPECT_FALSE(with_other_noun(sentence, 3)) << "'cross' is no noun";
  EXPECT_FALSE(with_other_adjective(sentence, {word.pronoun, word.pronoun, word.target, word.other}))
      << "a pronoun is no adjective";
  sentence.source[5] = "lake";  // masculine, as is the animal
  EXPECT_EQ(rival_of(sentence, sentence.referents[0]), -1);
  EXPECT_FALSE(with_other_adjective(sentence, word));
  sentence.source[5] = "streets";
  EXPECT_EQ(rival_of(sentence, sentence.referents[0]), -1) << "'it' is no plural";
}

TEST(Counterparts, ChangeOneWordAndTheGender) {
  Grammar grammar(seeded(4));
  int adjectives = 0, others = 0;
  for (int n = 0; n < 600; ++n) {
    const Sentence sentence = grammar.next();
    for (const AgreeingWord& word : agreeing_words(sentence)) {
      const Referent referent = *std::find_if(sentence.referents.begin(), sentence.referents.end(),
                                              [&](const Referent& one) { return one.pronoun == word.pronoun; });
      const NounForm meant = noun_form_of(sentence.source[static_cast<size_t>(referent.noun)]);
      ASSERT_TRUE(meant.noun) << join(sentence.source);
      if (const auto changed = with_other_adjective(sentence, word)) {
        ++adjectives;
        EXPECT_EQ(difference(sentence.source, *changed), word.source);
        const Adjective& other = adjective((*changed)[static_cast<size_t>(word.source)]);
        EXPECT_FALSE(describes(other, *meant.noun));
        const NounForm rival = noun_form_of(sentence.source[static_cast<size_t>(rival_of(sentence, referent))]);
        EXPECT_TRUE(describes(other, *rival.noun));
        EXPECT_NE(rival.noun->gender, meant.noun->gender);
      }
      if (const auto changed = with_other_noun(sentence, referent.noun)) {
        ++others;
        EXPECT_EQ(difference(sentence.source, *changed), referent.noun);
        const NounForm other = noun_form_of((*changed)[static_cast<size_t>(referent.noun)]);
        EXPECT_NE(other.noun->gender, meant.noun->gender);
        EXPECT_EQ(other.number, meant.number);
        EXPECT_EQ(other.noun->traits & meant.noun->traits, meant.noun->traits);
      }
    }
  }
  EXPECT_GT(adjectives, 5);
  EXPECT_GT(others, 20);
}

}  // namespace
}  // namespace heed::grammar
