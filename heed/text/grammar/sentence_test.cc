#include "heed/text/grammar/sentence.h"

#include <gtest/gtest.h>

namespace heed::grammar {
namespace {

using Words = std::vector<std::string>;

TEST(Tokens, ArePunctuationAndWords) {
  EXPECT_EQ(tokens("The dog didn't bark."), (Words{"The", "dog", "didn't", "bark", "."}));
  EXPECT_EQ(tokens("¿Es ancha la calle?"), (Words{"¿", "Es", "ancha", "la", "calle", "?"}));
  EXPECT_EQ(tokens("Vino, pero no comió."), (Words{"Vino", ",", "pero", "no", "comió", "."}));
  EXPECT_EQ(tokens(""), Words{});
  EXPECT_EQ(tokens("  two  words "), (Words{"two", "words"}));
  EXPECT_EQ(tokens("?!"), (Words{"?!"}));  // no sentence of the grammar exclaims
  EXPECT_EQ(tokens("..."), (Words{".", ".", "."}));
}

TEST(Tokens, GoBackToText) {
  for (const char* text : {"The dog didn't bark.", "¿Es ancha la calle?", "Vino, pero no comió.", ""}) {
    EXPECT_EQ(detokenise(tokens(text)), text);
  }
}

TEST(SentenceText, PrintsWhatIsKnown) {
  EXPECT_EQ(pharaoh({{0, 0, Certainty::sure}, {1, 2, Certainty::sure}, {8, 2, Certainty::possible}}), "0-0 1-2 8p2");
  EXPECT_EQ(pharaoh({}), "");
  EXPECT_EQ(to_string(std::vector<Referent>{{8, 1}, {9, 4}}), "8-1 9-4");
  EXPECT_EQ(to_string(std::vector<Tag>{Tag::det, Tag::noun, Tag::verb, Tag::punct}), "DET NOUN VERB PUNCT");
  EXPECT_EQ(name(Tag::adj), "ADJ");
  EXPECT_EQ(name(Tag::sconj), "SCONJ");
}

}  // namespace
}  // namespace heed::grammar
