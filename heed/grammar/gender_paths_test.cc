// SPDX-License-Identifier: Apache-2.0
// Which nouns methods find, and what patching flips: counted again by hand, for a small random model.
#include "heed/grammar/gender_paths.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heed/analysis/heads.h"
#include "heed/analysis/links.h"
#include "heed/analysis/patch.h"
#include "heed/base/testing.h"
#include "heed/data/testing.h"
#include "heed/grammar/counterparts.h"
#include "heed/grammar/grammar.h"
#include "heed/grammar/noun_finding.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

using heed::testing::seeded;

class GenderPathsTest : public ::testing::Test {
 protected:
  GenderPathsTest() : sentences_(some_sentences()), engine_(some_model()) {}

  static std::vector<Sentence> some_sentences(int count = 400) {
    Grammar grammar(seeded(3));
    std::vector<Sentence> sentences;
    for (int n = 0; n < count; ++n) sentences.push_back(grammar.next());
    return sentences;
  }
  static decode::Engine some_model() {
    std::vector<std::string> lines;
    for (const Sentence& sentence : some_sentences(3000)) {  // all nouns, so that none of a counterpart is unknown
      lines.push_back(text::detokenise(sentence.source));
      lines.push_back(text::detokenise(sentence.target));
    }
    const std::shared_ptr<const text::Tokenizer> tokenizer = text::train_tokenizer(lines, {});
    std::shared_ptr<models::Model> model =
        data::testing::small_model(models::TransformerKind::encoder_decoder, tokenizer->size(), 1);
    // What the source says is to matter more than what the model would say anyway.
    for (const auto& entry : model->parameters().entries()) {
      if (entry.name.find("cross.v.weight") == entry.name.npos && !entry.name.starts_with("encoder.")) continue;
      for (float& x : entry.value.span<float>()) x *= 4;
    }
    return decode::Engine(data::TextModel(std::move(model), data::Tokenizers::shared(tokenizer)));
  }
  void each(const std::function<void(const nn::Pass&, const GenderQuestion&)>& use) const {
    for_each_gender_question(engine_, sentences_, {}, use);
  }

  const std::vector<Sentence> sentences_;
  const decode::Engine engine_;
};

TEST_F(GenderPathsTest, AsksForTheWordThatAgrees) {
  int64_t count = 0;
  each([&](const nn::Pass&, const GenderQuestion& asked) {
    ++count;
    const auto at = static_cast<size_t>(*asked.question.target().position);
    const text::Tokenizer& tokenizer = engine_.text_model().target();
    EXPECT_EQ(tokenizer.decode(std::span(&asked.question.labels()[at], 1)),
              asked.sentence.target[static_cast<size_t>(asked.word.target)]);
    const int32_t against = *asked.question.target().against;
    EXPECT_EQ(tokenizer.decode(std::span(&against, 1)), asked.word.other);
    EXPECT_NE(std::find(asked.nouns.begin(), asked.nouns.end(), asked.referent.noun), asked.nouns.end());
    EXPECT_GE(asked.nouns.size(), 2u);
  });
  EXPECT_GT(count, 20);
}

TEST_F(GenderPathsTest, NounsAreFoundAsTheDefinitionSays) {
  const NounFinding found = find_nouns(engine_, sentences_, {.steps = 2});
  int64_t words = 0, right = 0, by_weight = 0;
  each([&](const nn::Pass& pass, const GenderQuestion& asked) {
    ++words;
    if (asked.question.measure(pass) <= 0) return;
    ++right;
    const auto from = asked.reading.queries({nn::TextSide::source, static_cast<size_t>(asked.word.source)});
    const std::vector<double> weights = analysis::weight_links(pass, asked.question, from).at(2).links;
    int best = asked.nouns[0];  // one token a word
    for (const int noun : asked.nouns) {
      if (weights[static_cast<size_t>(noun)] > weights[static_cast<size_t>(best)]) best = noun;
    }
    by_weight += best == asked.referent.noun;
  });
  EXPECT_EQ(found.words, words);
  EXPECT_EQ(found.right, right);
  ASSERT_GT(right, 5);
  EXPECT_GT(found.by_chance, 0);
  EXPECT_LE(found.by_chance, static_cast<double>(right) / 2 + 1e-9);
  const auto finder = [&](const std::string& method, const std::string& head) {
    return *std::find_if(found.finders.begin(), found.finders.end(),
                         [&](const NounFinder& one) { return one.method == method && one.head == head; });
  };
  EXPECT_EQ(finder("weights", "encoder.1.self.0").found,
            (std::array<std::optional<int64_t>, 3>{finder("weights", "encoder.1.self.0").found[0], by_weight, {}}));
  for (const char* method : {"weights", "values", "gradients", "rollout"}) {
    for (const auto& one : finder(method, "").found) EXPECT_TRUE(one && *one <= right) << method;
  }
  for (const char* method : {"integrated", "leave-out"}) {
    EXPECT_FALSE(finder(method, "").found[0]) << method;
    EXPECT_TRUE(finder(method, "").found[2]) << method;
  }
  EXPECT_EQ(found.best("weights", From::target)->head.substr(0, 8), "decoder.");
  EXPECT_EQ(found.best("rollout", From::target), nullptr) << "it has no heads";
}

TEST_F(GenderPathsTest, FlipsAreThoseOfPatchingAndOfHeadsThatAreOff) {
  const GenderPaths found = gender_paths(engine_, sentences_);
  int64_t pairs = 0, flipped = 0, flips = 0, off = 0;
  double change = 0;
  each([&](const nn::Pass& pass, const GenderQuestion& asked) {
    const double own = asked.question.measure(pass);
    const auto noun = with_other_noun(asked.sentence, asked.referent.noun);
    if (noun && own > 0) {
      ++pairs;
      const auto other = analysis::question_of(asked.question, asked.reading.with_text(text::detokenise(*noun)));
      if (other.measure(pass) < 0) {
        ++flipped;
        const double value = analysis::patched(pass, asked.question, other, {{"decoder.1.cross", 1}});
        flips += value < 0;
        change += value - own;
      }
    }
    const auto adjective = with_other_adjective(asked.sentence, asked.word);
    if (!adjective || own <= 0) return;
    const auto other = analysis::question_of(asked.question, asked.reading.with_text(text::detokenise(*adjective)));
    if (other.measure(pass) >= 0) return;
    off += own + analysis::effect_of(pass, asked.question, {{"encoder.0.self", 0, 0}}) < 0;
  });
  EXPECT_EQ(found.noun.pairs, pairs);
  EXPECT_EQ(found.noun.flipped, flipped);
  EXPECT_LT(found.noun.way, 0);
  ASSERT_GT(flipped, 0);
  const auto named = [](const auto& list, const std::string& name) {
    return *std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.name == name; });
  };
  const PatchedPath path = named(found.noun.patched, "decoder.1.cross.1");
  EXPECT_EQ(path.flips, flips);
  EXPECT_EQ(path.change, change);
  // 12 heads, 6 layers, and at each of two words two layers of the encoder and both.
  EXPECT_EQ(found.noun.patched.size(), 24u);
  if (found.adjective.flipped > 0) {
    ASSERT_EQ(found.off.size(), 12u);
    EXPECT_EQ(named(found.off, "encoder.0.self.0").flips, off);
  }
}

}  // namespace
}  // namespace heed::grammar
