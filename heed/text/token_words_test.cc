// SPDX-License-Identifier: Apache-2.0
#include "heed/text/token_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heed/base/testing.h"
#include "heed/text/words.h"

namespace heed::text {
namespace {

using Words = std::vector<int64_t>;

std::unique_ptr<Tokenizer> tokenizer_of(TokenizerKind kind, int64_t vocabulary, bool lowercase = false) {
  std::vector<std::string> lines;
  for (int i = 0; i < 20; ++i) {
    lines.insert(lines.end(), {"The cat sleeps.", "¿Duerme el gato?", "The old cats sleep in the old castle.", "a b c",
                               "Many animals crossed the narrow street because they were very tired and hungry."});
  }
  return train_tokenizer(lines, {.kind = kind, .vocabulary = vocabulary, .lowercase = lowercase});
}

Words words_of(const Tokenizer& tokenizer, const std::string& text, const std::vector<std::string>& words) {
  return words_of_tokens(tokenizer, tokenizer.encode(text), text, words);
}

TEST(TokenWords, AMarkBelongsToTheWordItStandsAtOrIsOne) {
  const auto tokenizer = tokenizer_of(TokenizerKind::words, 50);
  const std::string text = "¿Duerme el  gato?";
  EXPECT_EQ(words_of(*tokenizer, text, words_at_spaces(text)), (Words{0, 0, 1, 2, 2}));
  EXPECT_EQ(words_of(*tokenizer, text, words_and_marks("¿Duerme el gato?")), (Words{0, 1, 2, 3, 4}));
}

TEST(TokenWords, AnySpaceEndsAWord) {
  const auto tokenizer = tokenizer_of(TokenizerKind::words, 50);
  const std::string text = "¿Duerme\u00A0el\tgato?";
  EXPECT_EQ(words_of(*tokenizer, text, words_at_spaces(text)), (Words{0, 0, 1, 2, 2}));
  EXPECT_EQ(words_of(*tokenizer, text, words_and_marks(text)), (Words{0, 1, 2, 3, 4}));
}

// Each word as often as it has tokens, in order, whatever the tokens are.
TEST(TokenWords, SubwordsAndCharactersFindTheirWord) {
  const std::string text = "The old cats sleep. ¿Duerme el gato?";
  for (const bool lowercase : {false, true}) {
    for (const auto& [kind, size] :
         {std::pair{TokenizerKind::unigram, 40}, {TokenizerKind::bpe, 45}, {TokenizerKind::characters, 60}}) {
      const auto tokenizer = tokenizer_of(kind, size, lowercase);
      const Words words = words_of(*tokenizer, text, words_at_spaces(text));
      ASSERT_GT(words.size(), 7u);
      EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
      EXPECT_EQ(words.front(), 0);
      EXPECT_EQ(words.back(), 6);
      EXPECT_EQ(std::set<int64_t>(words.begin(), words.end()).size(), 7u);
    }
  }
}

TEST(TokenWords, UnknownWordsTakeTheirPlace) {
  const auto tokenizer = tokenizer_of(TokenizerKind::words, 50);
  const std::string text = "The aardvark banana a cat xyz.";
  EXPECT_EQ(words_of(*tokenizer, text, words_at_spaces(text)), (Words{0, 1, 2, 3, 4, 5, 5}));
}

TEST(TokenWords, EndsAreNoWords) {
  const auto tokenizer = tokenizer_of(TokenizerKind::words, 50);
  std::vector<int32_t> ids = tokenizer->encode("The cat");
  ids.push_back(kEnd);
  EXPECT_EQ(words_of_tokens(*tokenizer, ids, "The cat", words_at_spaces("The cat")), (Words{0, 1, -1}));
  EXPECT_EQ(heed::testing::error_of([&] {
              words_of(*tokenizer, "The cat", {"The", "dog"});
            }),
            "words: they are not those of the text");
}

}  // namespace
}  // namespace heed::text
