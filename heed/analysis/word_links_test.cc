// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/word_links.h"

#include <cmath>
#include <numeric>

#include "heed/analysis/heads.h"
#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using Kind = models::TransformerKind;

class WordLinksTest : public AnalysisTest {
 protected:
  static data::TextModel text_model(const models::ModelOptions& options) {
    const std::shared_ptr<const text::Tokenizer> letters =
        text::train_tokenizer(std::vector<std::string>{"a b c d e"}, {});
    auto other = options;
    if (auto* own = std::get_if<models::TransformerOptions>(&other.family); own && own->outputs > 0) {
      own->outputs = kWords;
    }
    return data::TextModel(drawn(other, 1), data::Tokenizers::shared(letters));
  }
};

// The gate of a head scales its output at every query: what it does from each word sums up to what it does at all.
TEST_F(WordLinksTest, GradientsOfAllWordsSumUpToThatOfTheGate) {
  const data::TextModel model = text_model(transformer(Kind::encoder));
  const Reading reading(model, "a c b", {4, 5, 6});
  const Question question = reading.question("c");
  const std::vector<HeadValue> whole = head_gradients(pass(), question);
  std::vector<double> sums(whole.size());
  const Queries end{.source = {3}};  // and the end of the sentence, which is no word
  for (size_t i = 0; const HeadLinks& one : gradient_links(pass(), question, end)) {
    sums[i++] += std::accumulate(one.links.begin(), one.links.end(), 0.0);
  }
  for (const char* word : {"a", "c", "b"}) {
    const auto ranked = rank_heads(pass(), reading, question, reading.find(word), 0);
    ASSERT_EQ(ranked.size(), whole.size());
    for (const RankedHead& one : ranked) {
      for (size_t i = 0; i < whole.size(); ++i) {
        if (whole[i].layer == one.weights.layer && whole[i].head == one.weights.head) sums[i] += one.gradient;
      }
    }
  }
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(sums[i], whole[i].value, 1e-10) << whole[i].layer;
}

TEST_F(WordLinksTest, HeadsAreRankedAndTheFirstAreMeasured) {
  const data::TextModel model = text_model(transformer(Kind::encoder_decoder));
  const Reading reading(model, "a c b", {5, 6});
  const Question question = reading.question("c");
  const auto effects = head_effects(pass(), question);
  for (const auto& from : {std::optional<WordPlace>(), std::optional(reading.find("b"))}) {
    const auto ranked = rank_heads(pass(), reading, question, from, 2);
    ASSERT_EQ(ranked.size(), from ? 4u : 12u) << "those of the encoder, or all";
    for (size_t i = 0; i < ranked.size(); ++i) {
      if (i > 0) {
        EXPECT_LE(std::abs(ranked[i].gradient), std::abs(ranked[i - 1].gradient));
      }
      ASSERT_EQ(ranked[i].off.has_value(), i < 2);
      for (const HeadValue& effect : effects) {
        const bool same = effect.layer == ranked[i].weights.layer && effect.head == ranked[i].weights.head;
        if (same && i < 2) {
          EXPECT_EQ(*ranked[i].off, effect.value);
        }
      }
      const std::vector<double>& weights = ranked[i].weights.links.words;
      if (from) {
        EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), ranked[i].weights.links.rest), 1, 1e-12);
      }
    }
  }
}

TEST_F(WordLinksTest, OfAWordOfTheTranslationGoToBothSides) {
  const data::TextModel model = text_model(transformer(Kind::encoder_decoder));
  const Reading reading(model, "a c b", {5, 8});
  const auto links = word_links(pass(), reading, reading.question(), reading.find("e"), LinkMethod::weights);
  ASSERT_EQ(links.size(), 8u) << "masked and cross, two layers of two heads";
  for (const WordLinks& one : links) {
    const bool cross = one.layer.ends_with("cross");
    EXPECT_EQ(one.keys == nn::TextSide::source, cross);
    EXPECT_EQ(one.links.words.size(), cross ? 3u : 2u);
    if (!cross) {
      EXPECT_EQ(one.links.words[1], 0) << "it does not see itself when it is predicted";
    }
  }
}

TEST_F(WordLinksTest, WordsLookedAtAreTheMeanOfTheLastLayersHeads) {
  for (const models::ModelOptions& options :
       {models::ModelOptions(transformer(Kind::encoder)), models::ModelOptions(transformer(Kind::decoder))}) {
    const data::TextModel model = text_model(options);
    const bool tags = model.task() == models::Task::tag;
    const Reading reading(model, "a c b", tags ? std::vector<int32_t>{4, 5, 6} : std::vector<int32_t>{});
    const Question question = reading.question("b");
    const auto looked_at = [&](const AlignOptions& align) {
      std::vector<ByWord> looks;
      words_looked_at(pass(), reading, question, align, [&](size_t word, const ByWord& look) {
        EXPECT_EQ(word, looks.size());
        looks.push_back(look);
      });
      return looks;
    };
    const auto looks = looked_at({});
    const auto all = word_links(pass(), reading, question, reading.find("c"), LinkMethod::weights);
    ASSERT_EQ(looks.size(), 3u);
    ASSERT_EQ(all.size(), 4u);
    for (size_t word = 0; word < 3; ++word) {
      EXPECT_NEAR(looks[1].words[word], (all[2].links.words[word] + all[3].links.words[word]) / 2, 1e-12);
      EXPECT_NEAR(looked_at({.layer = 0, .head = 1})[1].words[word], all[1].links.words[word], 1e-12);
    }
    EXPECT_EQ(error_of([&] { looked_at({.layer = 2}); }), "words looked at: layer is 2, expected 0 to 1, or -1");
  }
}

// So long that the rows are computed in several blocks.
TEST_F(WordLinksTest, WordsOfALongTextLookAsEachOfThemDoes) {
  models::TransformerOptions options = transformer(Kind::decoder);
  options.max_length = 1600;
  const data::TextModel model = text_model(options);
  constexpr size_t kLength = 1500;
  std::string text;
  for (size_t i = 0; i < kLength; ++i) text += i % 3 == 0 ? "a " : i % 7 == 0 ? "c " : "b ";
  const Reading reading(model, text, {});
  const Question question = reading.question("b");
  size_t words = 0;
  words_looked_at(pass(), reading, question, {}, [&](size_t word, const ByWord& look) {
    EXPECT_EQ(word, words++);
    EXPECT_NEAR(std::accumulate(look.words.begin(), look.words.end(), look.rest), 1, 1e-9);
    if (word % 499 != 0) return;
    const auto links = weight_links(pass(), question, {.target = {static_cast<int64_t>(word) + 1}});
    ASSERT_EQ(links.size(), 4u);
    for (size_t s = 0; s < kLength; s += 11) {
      EXPECT_NEAR(look.words[s], (links[2].links[s + 1] + links[3].links[s + 1]) / 2, 1e-12) << word << " " << s;
    }
  });
  EXPECT_EQ(words, kLength);
}

}  // namespace
}  // namespace heed::analysis
