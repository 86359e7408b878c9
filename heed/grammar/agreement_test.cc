// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/agreement.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/grammar/english.h"
#include "heed/grammar/grammar.h"
#include "heed/grammar/lexicon.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

using heed::testing::seeded;

const Noun& noun_of(const std::string& form) {
  for (const Noun& noun : nouns()) {
    for (const Number number : {Number::singular, Number::plural}) {
      if (english::noun_form(noun, number) == form) return noun;
    }
  }
  throw Error(form);
}

Sentence street(const std::string& reason, const std::string& translation) {
  const bool wide = reason == "wide";
  return sentence_of("The animal didn't cross the street because it was too " + reason + ".",
                     "El animal no cruzó la calle porque " + translation + ".",
                     "0-0 1-1 2-2 2p3 3-3 4-4 5-5 6-6 7p7 8-7 9-8 10-9 11-10", wide ? "7-5" : "7-1",
                     "DET NOUN AUX VERB DET NOUN SCONJ PRON AUX ADV ADJ PUNCT");
}

TEST(Agreement, AnAdjectiveShowsWhatItIs) {
  const Sentence tired = street("tired", "estaba demasiado cansado");
  EXPECT_EQ(agreeing_words(tired), (std::vector<AgreeingWord>{{7, 10, 9, "cansada"}}));
  EXPECT_EQ(agreeing_words(street("wide", "era demasiado ancha")), (std::vector<AgreeingWord>{{7, 10, 9, "ancho"}}));
  EXPECT_TRUE(agreeing_words(street("wide", "era demasiado grande")).empty()) << "one form for both";
}

TEST(Agreement, ATranslationIsJudgedInItsPlace) {
  const Sentence tired = street("tired", "estaba demasiado cansado");
  const AgreeingWord word = agreeing_words(tired)[0];
  const auto verdict = [&](const std::string& text) { return judge(word, tired.target, text::words_and_marks(text)); };
  EXPECT_EQ(verdict("El animal no cruzó la calle porque estaba demasiado cansado."), Verdict::right);
  EXPECT_EQ(verdict("El animal no cruzó la calle porque estaba demasiado cansada."), Verdict::wrong);
  EXPECT_EQ(verdict("Animal viejo no cruzó calle porque estaba muy cansada."), Verdict::wrong) << "elsewhere";
  EXPECT_EQ(verdict("El animal no cruzó la calle porque era demasiado ancha."), Verdict::absent);
  EXPECT_EQ(verdict(""), Verdict::absent);
}

// What the grammar says must be what it means: the agreeing word has the referent's gender.
TEST(Agreement, FollowsTheReferentInEverySentence) {
  Grammar grammar(seeded(5));
  int64_t shown = 0, pronouns = 0;
  for (int n = 0; n < 5000; ++n) {
    const Sentence sentence = grammar.next();
    for (const AgreeingWord& word : agreeing_words(sentence)) {
      ++shown;
      const auto referent = std::find_if(sentence.referents.begin(), sentence.referents.end(),
                                         [&](const Referent& r) { return r.pronoun == word.pronoun; });
      const Noun& noun = noun_of(sentence.source[static_cast<size_t>(referent->noun)]);
      const std::string& form = sentence.target[static_cast<size_t>(word.target)];
      const bool feminine = form.back() == 's' ? form[form.size() - 2] == 'a' : form.back() == 'a';
      EXPECT_EQ(feminine, noun.gender == Gender::feminine) << text::detokenise(sentence.target) << ": " << form;
      EXPECT_EQ(judge(word, sentence.target, sentence.target), Verdict::right);
    }
    pronouns += static_cast<int64_t>(sentence.referents.size());
  }
  EXPECT_GT(shown, pronouns / 2) << "most pronouns show their gender";
}

TEST(Agreement, FilesThatDoNotFitAreRejected) {
  using heed::testing::error_of;
  const auto error = [](const std::string& alignment, const std::string& referents, const std::string& tags) {
    return error_of([&] { sentence_of("He sleeps.", "Duerme.", alignment, referents, tags); });
  };
  EXPECT_EQ(error("0-0", "", "PRON VERB PUNCT"), "no error");
  EXPECT_EQ(error("0-2", "", "PRON VERB PUNCT"), "target token 2 is not there, expected below 2");
  EXPECT_EQ(error("", "0-7", "PRON VERB PUNCT"), "noun 7 is not there, expected below 3");
  EXPECT_EQ(error("", "", "PRON VERB"), "2 tags for 3 tokens, expected as many");
  EXPECT_EQ(error("", "", "PRON VERB DOT"), "'DOT' is no tag, expected such as NOUN");
}

}  // namespace
}  // namespace heed::grammar
