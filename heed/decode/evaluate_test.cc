#include "heed/decode/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/decode/pronouns.h"
#include "heed/decode/testing.h"
#include "heed/text/grammar/agreement.h"
#include "heed/text/grammar/grammar.h"
#include "heed/text/words.h"

namespace heed::decode {
namespace {

text::Corpus corpus_of(const std::vector<text::Pair>& pairs) { return {pairs, {}}; }

TEST(Evaluate, ScoresAreOfAllTogether) {
  const text::Corpus corpus = corpus_of({{"a b", "A B", 1}, {"c", "C", 2}, {"a b c d e f", "A B C D E F", 3}});
  const std::vector<Judged> judged{{0, 3 * std::log(2.0), 3, 3, "A B", {{0, 0}, {1, 1}}},
                                   {1, 2 * std::log(2.0), 2, 1, "D", {{0, 0}}},
                                   {2, 7 * std::log(2.0), 7, 5, "A B C D E F", {{0, 1}}}};
  const std::vector<text::Alignment> gold{{{0, 0}, {1, 1}}, {{0, 0}}, {{0, 0}}};
  const Scores all = scores_of(judged, corpus, gold);
  EXPECT_EQ(all.sentences, 3);
  EXPECT_EQ(all.tokens, 12);
  EXPECT_NEAR(all.perplexity, 2, 1e-12);
  EXPECT_NEAR(all.accuracy, 9.0 / 12, 1e-12);
  EXPECT_NEAR(*all.exact, 2.0 / 3, 1e-12);
  EXPECT_NEAR(*all.alignment_error, 1 - 6.0 / 8, 1e-12);
  EXPECT_GT(*all.bleu, 50);
  EXPECT_FALSE(scores_of(judged, corpus).alignment_error) << "there was no gold";

  const auto by_length = scores_by_length(judged, corpus, gold);
  ASSERT_EQ(by_length.size(), 2u);
  EXPECT_EQ(by_length[0].from, 1);
  EXPECT_EQ(by_length[0].to, 5);
  EXPECT_EQ(by_length[0].scores.sentences, 2);
  EXPECT_NEAR(*by_length[0].scores.exact, 0.5, 1e-12);
  EXPECT_EQ(by_length[1].from, 6);
  EXPECT_EQ(*by_length[1].scores.alignment_error, 1);
}

TEST(Evaluate, ALanguageModelHasNoTranslations) {
  const Scores scores = scores_of({{0, std::log(3.0), 1, 0}}, corpus_of({{"", "A", 1}}));
  EXPECT_NEAR(scores.perplexity, 3, 1e-12);
  EXPECT_FALSE(scores.bleu || scores.chrf || scores.exact);
}

class Sentences : public ::testing::Test {
 protected:
  Sentences() {
    grammar::Grammar grammar(3);
    std::vector<std::string> lines;
    for (int64_t n = 1; n <= 40; ++n) {
      sentences.push_back(grammar.next());
      const std::string source = text::detokenise(sentences.back().source),
                        target = text::detokenise(sentences.back().target);
      corpus.pairs.push_back({source, target, n});
      lines.push_back(source), lines.push_back(target);
    }
    tokenizer = text::train_tokenizer(lines, {});
    model = testing::small_model(models::TransformerKind::encoder_decoder, tokenizer->size(), 1);
  }

  std::vector<grammar::Sentence> sentences;
  text::Corpus corpus;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<models::Model> model;
  Parallel parallel{1};
  Workspace workspace;
};

TEST_F(Sentences, EachIsJudgedByItself) {
  nn::Pass pass{{parallel, workspace}};
  EvaluateOptions options;
  options.search.max_length = 5, options.aligned = true;
  int64_t told = 0;
  const auto all = judge_pairs(pass, *model, *tokenizer, corpus, options, [&](int64_t done) { told = done; });
  ASSERT_EQ(all.size(), corpus.pairs.size());
  EXPECT_EQ(told, 40);
  for (const size_t i : {size_t{0}, size_t{17}, size_t{39}}) {
    const text::Corpus alone = corpus_of({corpus.pairs[i]});
    const Judged one = judge_pairs(pass, *model, *tokenizer, alone, options)[0];
    EXPECT_EQ(all[i].pair, static_cast<int64_t>(i));
    EXPECT_EQ(all[i].tokens, std::ssize(tokenizer->encode(corpus.pairs[i].target)) + 1);
    EXPECT_NEAR(all[i].loss, one.loss, 1e-3) << "whatever else is in its batch";
    EXPECT_EQ(all[i].right, one.right);
    EXPECT_EQ(all[i].alignment.size(), sentences[i].target.size()) << "a link for each word of the reference";
    for (const text::AlignmentLink& link : all[i].alignment) {
      EXPECT_LT(link.source, std::ssize(sentences[i].source));
      EXPECT_LT(link.target, std::ssize(sentences[i].target));
    }
  }
}

TEST_F(Sentences, GendersAreThoseOfTheReference) {
  std::vector<std::string> right, wrong, none(sentences.size());
  for (const grammar::Sentence& sentence : sentences) {
    std::vector<std::string> target = sentence.target;
    right.push_back(text::detokenise(target));
    for (const auto& word : grammar::agreeing_words(sentence)) target[static_cast<size_t>(word.target)] = word.other;
    wrong.push_back(text::detokenise(target));
  }
  const PronounGenders a = pronoun_genders(sentences, right), b = pronoun_genders(sentences, wrong),
                       c = pronoun_genders(sentences, none);
  EXPECT_GT(a.pronouns, 5);
  EXPECT_EQ(a.right, a.pronouns);
  EXPECT_EQ(b.wrong, a.pronouns);
  EXPECT_EQ(c.absent, a.pronouns);
}

TEST_F(Sentences, EveryHeadIsCounted) {
  nn::Pass pass{{parallel, workspace}};
  const PronounAttention seen = pronoun_attention(pass, *model, *tokenizer, sentences);
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
}  // namespace heed::decode
