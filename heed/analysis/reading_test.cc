// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/reading.h"

#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using Kind = models::TransformerKind;
using nn::TextSide;
using Ids = std::vector<int32_t>;
using Places = std::vector<int64_t>;

// Words a to e are tokens 4 to 8, after four special ones.
std::shared_ptr<const text::Tokenizer> letters() {
  return text::train_tokenizer(std::vector<std::string>{"a b c d e"}, {.kind = text::TokenizerKind::words});
}
std::shared_ptr<const text::Tokenizer> characters(const std::string& text) {
  return text::train_tokenizer(std::vector<std::string>{text}, {.kind = text::TokenizerKind::characters});
}

data::TextModel text_model(Kind kind, const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  models::TransformerOptions options = transformer(kind);
  options.vocabulary = tokenizer->size();
  if (kind == Kind::encoder) options.outputs = tokenizer->size();
  return data::TextModel(drawn(options, 1), data::Tokenizers::shared(tokenizer));
}

TEST(Reading, OfATranslationHasTwoSides) {
  const Reading reading(text_model(Kind::encoder_decoder, letters()), "a c e", {5, 6});
  EXPECT_EQ(reading.pair().source, (Ids{4, 6, 8}));
  EXPECT_EQ(reading.words(TextSide::source), (std::vector<std::string>{"a", "c", "e"}));
  EXPECT_EQ(reading.words(TextSide::target), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(reading.queries(reading.find("E")).source, (Places{2}));
  EXPECT_EQ(reading.queries(reading.find("c")).source, (Places{1})) << "the source comes first";
  EXPECT_EQ(reading.queries(reading.find("b")).target, (Places{0})) << "predicted from <s>";
  EXPECT_EQ(reading.tokens_of_words(), (std::vector<Places>{{0}, {1}, {2}}));
  EXPECT_EQ(error_of([&] { reading.find("d"); }),
            "the word is 'd', expected a word of the sentence or of its translation");
  const ByWord source = reading.by_word(TextSide::source, std::vector<double>{1, 2, 3, 4}),
               target = reading.by_word(TextSide::target, std::vector<double>{1, 2, 3});
  EXPECT_EQ(source.words, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(source.rest, 4) << "the end";
  EXPECT_EQ(target.words, (std::vector<double>{2, 3}));
  EXPECT_EQ(target.rest, 1) << "<s>";
}

TEST(Reading, AsksForAWordOfTheOutputOrForAll) {
  const Reading reading(text_model(Kind::encoder_decoder, letters()), "a c e", {5, 6});
  EXPECT_FALSE(reading.question().target().position);
  EXPECT_EQ(reading.question("c").target().position, 1);
  const Target other = reading.question("c", "d").target();
  EXPECT_EQ(other.position, 1);
  EXPECT_EQ(other.token, 6);
  EXPECT_EQ(other.against, 7);
  EXPECT_EQ(error_of([&] { reading.question("e"); }), "the word is 'e', expected a word of the output 'b c'");
  EXPECT_EQ(error_of([&] { reading.question("c", "x"); }), "the word is 'x', expected one that the model knows");
  EXPECT_EQ(error_of([&] { reading.question("c", "c"); }),
            "'c' in the place of 'c' gives the same tokens, expected another word");
  EXPECT_EQ(error_of([&] { reading.question({}, "d"); }),
            "no word of the output 'b c' is like 'd', expected the word that it replaces");
}

// 'cansado' against 'cansada', in pieces: the letters that they share come first, and the contrast is at the last.
TEST(Reading, ComparesWordsWhereTheyDiffer) {
  const auto tokenizer = characters("esta cansado cansada");
  const Reading reading(text_model(Kind::encoder_decoder, tokenizer), "esta", tokenizer->encode("esta cansado"));
  const Target target = reading.question({}, "cansada").target();
  ASSERT_TRUE(target.position);
  const Ids same = tokenizer->encode("esta cansado"), other = tokenizer->encode("esta cansada");
  EXPECT_EQ(*target.position, std::ssize(same) - 1);
  EXPECT_EQ(target.token, same.back());
  EXPECT_EQ(target.against, other.back());
}

TEST(Reading, OfALanguageModelIsOneText) {
  const Reading reading(text_model(Kind::decoder, letters()), "a c", {8});
  EXPECT_TRUE(reading.pair().source.empty());
  EXPECT_EQ(reading.pair().target, (Ids{4, 6, 8}));
  EXPECT_EQ(reading.first_output(), 2);
  EXPECT_EQ(reading.question().target().position, 2) << "what comes next";
  EXPECT_EQ(reading.question("c").target().position, 1);
  EXPECT_EQ(reading.queries(reading.find("c")).target, (Places{2})) << "where it is read, after <s>";
  EXPECT_EQ(reading.by_word(TextSide::target, std::vector<double>{1, 2, 3, 4}).words, (std::vector<double>{2, 3, 4}));
}

TEST(Reading, OfATaggerAsksForATag) {
  const Reading reading(text_model(Kind::encoder, letters()), "a c", {4, 5});
  EXPECT_TRUE(reading.words(TextSide::target).empty());
  EXPECT_EQ(reading.question("c").target().position, 1);
  EXPECT_EQ(reading.question("c", "e").target().against, 8);
  EXPECT_EQ(error_of([&] { reading.question("c", "x"); }), "the tag is 'x', expected a tag that the model knows");
  EXPECT_EQ(error_of([&] { reading.question({}, "e"); }),
            "another tag came without a word, expected the word whose tag it is");
}

TEST(Reading, NeedsAWord) {
  EXPECT_EQ(error_of([] { Reading(text_model(Kind::encoder, letters()), " ", {}); }),
            "the sentence ' ' has no word in it, expected at least one");
}

}  // namespace
}  // namespace heed::analysis
