// SPDX-License-Identifier: Apache-2.0
#include "heed/text/words.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"

namespace heed::text {
namespace {

using Words = std::vector<std::string>;

TEST(Words, AreCutAtSpaces) {
  EXPECT_EQ(words_at_spaces("  The cat\u00A0sleeps. "), (Words{"The", "cat", "sleeps."}));
  EXPECT_TRUE(words_at_spaces(" ").empty());
  EXPECT_EQ(heed::testing::error_of([] { words_at_spaces("caf\xe9"); }), "text: byte 4 is 0xe9, which is no UTF-8");
}

TEST(Words, AndMarksStandApart) {
  EXPECT_EQ(words_and_marks("The dog didn't bark."), (Words{"The", "dog", "didn't", "bark", "."}));
  EXPECT_EQ(words_and_marks("¿Es ancha la calle?"), (Words{"¿", "Es", "ancha", "la", "calle", "?"}));
  EXPECT_EQ(words_and_marks("Vino, pero no comió."), (Words{"Vino", ",", "pero", "no", "comió", "."}));
  EXPECT_EQ(words_and_marks(""), Words{});
  EXPECT_EQ(words_and_marks("  two  words "), (Words{"two", "words"}));
  EXPECT_EQ(words_and_marks("\tDuerme\u00A0el gato.\u00A0"), (Words{"Duerme", "el", "gato", "."}));
  EXPECT_EQ(words_and_marks("?!"), (Words{"?!"}));  // exclamation marks are none of them
  EXPECT_EQ(words_and_marks("..."), (Words{".", ".", "."}));
}

TEST(Words, AndMarksGoBackToText) {
  for (const char* text : {"The dog didn't bark.", "¿Es ancha la calle?", "Vino, pero no comió.", ""}) {
    EXPECT_EQ(detokenise(words_and_marks(text)), text);
  }
}

}  // namespace
}  // namespace heed::text
