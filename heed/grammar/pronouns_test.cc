// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/pronouns.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/data/testing.h"
#include "heed/grammar/agreement.h"
#include "heed/grammar/grammar.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

using heed::testing::seeded;

std::vector<Sentence> some_sentences() {
  Grammar grammar(seeded(3));
  std::vector<Sentence> sentences;
  for (int n = 0; n < 40; ++n) sentences.push_back(grammar.next());
  return sentences;
}

TEST(Pronouns, GendersAreThoseOfTheReference) {
  const std::vector<Sentence> sentences = some_sentences();
  std::vector<std::string> right, wrong, none(sentences.size());
  for (const Sentence& sentence : sentences) {
    std::vector<std::string> target = sentence.target;
    right.push_back(text::detokenise(target));
    for (const auto& word : agreeing_words(sentence)) target[static_cast<size_t>(word.target)] = word.other;
    wrong.push_back(text::detokenise(target));
  }
  const PronounGenders a = pronoun_genders(sentences, right), b = pronoun_genders(sentences, wrong),
                       c = pronoun_genders(sentences, none);
  EXPECT_GT(a.pronouns, 5);
  EXPECT_EQ(a.right, a.pronouns);
  EXPECT_EQ(b.wrong, a.pronouns);
  EXPECT_EQ(c.absent, a.pronouns);
}

TEST(Pronouns, EveryHeadIsCounted) {
  const std::vector<Sentence> sentences = some_sentences();
  std::vector<std::string> lines;
  for (const Sentence& sentence : sentences) lines.push_back(text::detokenise(sentence.source));
  const std::shared_ptr<const text::Tokenizer> tokenizer = text::train_tokenizer(lines, {});
  const decode::Engine engine(
      data::TextModel(data::testing::small_model(models::TransformerKind::encoder_decoder, tokenizer->size(), 1),
                      data::Tokenizers::shared(tokenizer)));
  const PronounAttention seen = pronoun_attention(engine, sentences);
  ASSERT_EQ(seen.heads.size(), 4u);
  EXPECT_EQ(seen.heads[2].layer, "encoder.1.self");
  EXPECT_EQ(seen.heads[3].head, 1);
  EXPECT_GT(seen.pronouns, 5);
  EXPECT_GT(seen.by_chance, 0);
  EXPECT_LT(seen.by_chance, static_cast<double>(seen.pronouns) / 2 + 1e-9);
  for (const PronounHead& head : seen.heads) {
    EXPECT_LE(head.found, seen.pronouns);
    EXPECT_LE(head.found_from_agreeing, seen.agreeing);
  }
  EXPECT_GT(seen.agreeing, 5);
}

}  // namespace
}  // namespace heed::grammar
