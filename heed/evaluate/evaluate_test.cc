// SPDX-License-Identifier: Apache-2.0
#include "heed/evaluate/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/data/testing.h"

namespace heed::evaluate {
namespace {

using heed::testing::seeded;

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
  EXPECT_DOUBLE_EQ(all.perplexity, 2);
  EXPECT_DOUBLE_EQ(all.accuracy, 9.0 / 12);
  EXPECT_EQ(all.whole, 1);
  EXPECT_DOUBLE_EQ(*all.exact, 2.0 / 3);
  EXPECT_DOUBLE_EQ(*all.alignment_error, 1 - 6.0 / 8);
  EXPECT_GT(*all.bleu, 50);
  EXPECT_FALSE(scores_of(judged, corpus).alignment_error) << "there was no gold";

  const auto by_length = scores_by_length(judged, corpus, gold);
  ASSERT_EQ(by_length.size(), 2u);
  EXPECT_EQ(by_length[0].from, 1);
  EXPECT_EQ(by_length[0].to, 5);
  EXPECT_EQ(by_length[0].scores.sentences, 2);
  EXPECT_DOUBLE_EQ(*by_length[0].scores.exact, 0.5);
  EXPECT_EQ(by_length[1].from, 6);
  EXPECT_EQ(*by_length[1].scores.alignment_error, 1);
}

TEST(Evaluate, AlignmentsBelongToTheirCorpus) {
  const heed::testing::TemporaryFolder folder;
  const std::string path = folder.file("gold.align");
  text::Corpus corpus = corpus_of({{"a b, c", "A B", 1}, {"d", "D E F", 3}});
  corpus.report.lines = 3;  // line 2 was left out
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return heed::testing::error_of([&] { read_alignments(path, corpus); });
  };
  EXPECT_EQ(read("0-0 3-1\n9-9\n0p2\n"), "no error") << "the comma is a word; nobody asks for line 2";
  EXPECT_EQ(read("0-0\n\n0-0\n0-0\n0-0\n"), path + ": has 5 lines, expected 3 as the corpus has");
  EXPECT_EQ(read("0-0\n\n"), path + ": has 2 lines, expected one for line 3 of the corpus");
  EXPECT_EQ(read("99-0\n\n0-0\n"), path +
                                       ":1: a link goes to word 99 of the source, expected one below 4: it has "
                                       "4 words, marks apart, counted from 0");
  EXPECT_EQ(read("0-0\n\n0-2 0p3\n"), path +
                                          ":3: a link goes to word 3 of the target, expected one below 3: it has "
                                          "3 words, marks apart, counted from 0");
  EXPECT_EQ(read("0-0\n\nx\n"), path + ":3: alignment: link 1 is no pair of numbers such as 0-2 or 0p2");
}

TEST(Evaluate, ALanguageModelHasNoTranslations) {
  const Scores scores = scores_of({{0, std::log(3.0), 1, 0, {}, {}}}, corpus_of({{"", "A", 1}}));
  EXPECT_DOUBLE_EQ(scores.perplexity, 3);
  EXPECT_FALSE(scores.bleu || scores.chrf || scores.exact);
}

class Letters : public ::testing::Test {
 protected:
  Letters() {
    Rng rng(seeded(1));
    for (int64_t n = 1; n <= 40; ++n) {
      text::Pair pair;
      pair.line = n;
      for (uint64_t i = 0, length = 1 + rng.below(6); i < length; ++i) {
        (pair.source += i ? " " : "") += static_cast<char>('a' + rng.below(5));
        (pair.target += i ? " " : "") += static_cast<char>('A' + rng.below(5));
      }
      corpus.pairs.push_back(pair);
      lines.push_back(pair.source), lines.push_back(pair.target);
    }
    tokenizer = text::train_tokenizer(lines, {});
    model = data::testing::small_model(models::TransformerKind::encoder_decoder, tokenizer->size(), 1);
  }
  decode::Engine engine() const { return decode::Engine(data::TextModel(model, data::Tokenizers::shared(tokenizer))); }
  TestSet set_of(const text::Corpus& some) const {
    return {some, data::Tokenizers::shared(tokenizer), models::Task::translate, 40};
  }

  text::Corpus corpus;
  std::vector<std::string> lines;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<const models::Model> model;
};

TEST_F(Letters, EachIsJudgedByItself) {
  EvaluateOptions options;
  options.translation.search.max_length = 5, options.align = true;
  int64_t told = 0;
  options.progress = [&](int64_t done) { told = done; };
  const auto all = judge(engine(), set_of(corpus), options);
  ASSERT_EQ(all.size(), corpus.pairs.size());
  EXPECT_EQ(told, 40);
  for (size_t i = 0; i < all.size(); ++i) {
    const Judged one = judge(engine(), set_of(corpus_of({corpus.pairs[i]})), options)[0];
    EXPECT_EQ(all[i].pair, static_cast<int64_t>(i));
    const int64_t tokens = std::ssize(tokenizer->encode(corpus.pairs[i].target)) + 1;
    EXPECT_EQ(all[i].tokens, tokens);
    EXPECT_NEAR(all[i].loss, one.loss, data::testing::rounding(static_cast<size_t>(tokens)))
        << "whatever else is in its batch";
    EXPECT_EQ(all[i].correct, one.correct);
    EXPECT_EQ(all[i].translation, one.translation);
    EXPECT_EQ(std::ssize(all[i].alignment), tokens - 1) << "a link for each word of the reference";
    for (const text::AlignmentLink& link : all[i].alignment) {
      EXPECT_LT(link.source, tokens - 1);
      EXPECT_LT(link.target, tokens - 1);
    }
  }
}

TEST_F(Letters, ReferencesAloneAreScoredWithoutTranslating) {
  const auto with = judge(engine(), set_of(corpus)), without = judge(engine(), set_of(corpus), {.translate = false});
  ASSERT_EQ(with.size(), corpus.pairs.size());
  ASSERT_EQ(without.size(), corpus.pairs.size());
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i].loss, without[i].loss);
    EXPECT_TRUE(with[i].translation);
    EXPECT_FALSE(without[i].translation);
  }
  EXPECT_FALSE(scores_of(without, corpus).bleu);
}

TEST_F(Letters, LongPairsAreLeftOut) {
  const TestSet set(corpus, data::Tokenizers::shared(tokenizer), models::Task::translate, 4);
  int64_t short_ones = 0;
  for (const text::Pair& pair : corpus.pairs) short_ones += pair.source.size() <= 5;  // three words
  EXPECT_EQ(std::ssize(set.pairs()), short_ones);
  EXPECT_EQ(set.left_out(), 40 - short_ones);
  for (const Judged& one : judge(engine(), set, {.translate = false})) {
    EXPECT_LE(corpus.pairs[static_cast<size_t>(one.pair)].source.size(), 5u);
  }
  EXPECT_EQ(heed::testing::error_of(
                [&] { TestSet(corpus, data::Tokenizers::shared(tokenizer), models::Task::translate, 1, "dev.tsv"); }),
            "dev.tsv: none of 40 pairs has at most 1 token");
}

TEST_F(Letters, UnknownTokensAreCounted) {
  text::Corpus some = corpus_of({{"a x b", "A B", 1}, {"y", "X A", 2}});
  const TestSet set = set_of(some);
  const UnknownOfPairs all = set.unknown();
  EXPECT_EQ(all.source.tokens, 4);
  EXPECT_EQ(all.source.unknown, 2);
  EXPECT_EQ(all.target.tokens, 4);
  EXPECT_EQ(all.target.unknown, 1);
  EXPECT_EQ(describe(all),
            "warning: 50.0 % of the source's tokens and 25.0 % of the target's are unknown: a larger vocabulary or "
            "subwords would know more of them");
  const auto judged = judge(engine(), set, {.translate = false});
  EXPECT_EQ(judged[0].unknown.target.unknown, 0);
  EXPECT_EQ(judged[1].unknown.target.unknown, 1);
  EXPECT_EQ(scores_of(judged, some).unknown.source.rate(), 0.5);
  EXPECT_EQ(describe(UnknownOfPairs{{}, {200, 1}}), "0.5 % of the tokens are unknown") << "a language model";
}

TEST(TestSet, ATagForEachToken) {
  const std::vector<std::string> words = {"the cat sleeps"}, tags = {"DET NOUN VERB"};
  const data::Tokenizers tokenizers{text::train_tokenizer(words, {}), text::train_tokenizer(tags, {})};
  const auto set = [&](const std::string& line) {
    return TestSet(corpus_of({{words[0], line, 4}}), tokenizers, models::Task::tag, 20, "dev.tsv");
  };
  EXPECT_EQ(set("DET NOUN VERB").pairs().size(), 1u);
  EXPECT_EQ(heed::testing::error_of([&] { set("DET NOUN"); }), "dev.tsv:4: 3 tokens and 2 tags, expected as many");
}

}  // namespace
}  // namespace heed::evaluate
