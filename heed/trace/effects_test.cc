// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/effects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heed/analysis/heads.h"
#include "heed/base/testing.h"
#include "heed/trace/record.h"
#include "heed/trace/testing.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::families, testing::Family, testing::text_model;

const std::string kSentence = "a b c, e";
constexpr double kTolerance = 1e-4;  // of log-probabilities in f32, one pass over all tokens against one a token

const Effect& effect_at(const Trace& trace, int64_t row) {
  return *std::ranges::find_if(trace.effects, [&](const Effect& one) { return one.row == row && !one.against; });
}

// The number that is explained is the one that was recorded, and the methods add up as they should.
TEST(Effects, AreAboutWhatWasChosenInEveryFamily) {
  size_t links = 0, integrated = 0, rollouts = 0, measured = 0;
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const decode::Engine engine(text_model(family.options, seeded(1)));
    Trace trace = record(engine, kSentence, {.search = {.max_length = 4}});
    add_effects(trace, engine, {.measured = 1, .integrated = 2, .rollout = true});
    for (const Step& step : trace.output.steps) {
      if (step.forced) continue;
      const Effect& effect = effect_at(trace, step.row);
      EXPECT_NEAR(effect.value, step.logprob, kTolerance);
      EXPECT_FALSE(effect.left_out.empty());
      for (const LeftOut& word : effect.left_out) measured += word.change.has_value();
      links += effect.links.size();
      EXPECT_TRUE(effect.heads.empty() || effect.heads.front().off);
      if (const auto& ig = effect.integrated) {
        ++integrated;
        double sum = 0;
        for (const Ref& ref : {ig->source, ig->target}) {
          if (!ref) continue;
          for (const float share : trace.values(ref)) sum += share;
        }
        EXPECT_NEAR(sum, effect.value - *ig->baseline + *ig->error, 1e-3);
      }
      if (const auto& shares = effect.rollout) {
        ++rollouts;
        double sum = 0;
        for (const Ref& ref : {shares->source, shares->target}) {
          if (!ref) continue;
          for (const float share : trace.values(ref)) sum += share;
        }
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
    EXPECT_EQ(to_json(from_json(to_json(trace), "t")), to_json(trace));
  }
  EXPECT_TRUE(links > 0 && integrated > 0 && rollouts > 0 && measured > 0);
}

// Leaving a word out and switching a head off, done here by hand.
TEST(Effects, AreMeasured) {
  const decode::Engine engine(text_model(testing::transformer(models::TransformerKind::encoder_decoder), seeded(2)));
  Trace trace = record(engine, kSentence, {.search = {.max_length = 4}});
  add_effects(trace, engine, {.measured = 100});
  const data::TextModel& model = engine.text_model();
  data::TokenPair pair;
  for (const Token& token : trace.sequence("source").tokens) {
    if (!token.special) pair.source.push_back(static_cast<int32_t>(token.id));
  }
  for (const Token& token : trace.sequence("target").tokens) {
    if (!token.special) pair.target.push_back(static_cast<int32_t>(token.id));
  }
  const decode::CallOptions call;
  decode::InferencePass pass(engine, call);
  const Effect& effect = trace.effects.front();
  const analysis::Target target{.position = effect.row};
  const analysis::Question question(model.model(), pair, target, model.special());
  data::TokenPair without = pair;
  without.source.erase(without.source.begin() + 1);
  const analysis::Question shorter(model.model(), without, target, model.special());
  EXPECT_DOUBLE_EQ(effect.left_out[1].change.value(), shorter.measure(pass) - question.measure(pass));
  EXPECT_EQ(effect.left_out[1].tokens.begin, 1);
  ASSERT_EQ(effect.heads.size(), 12u) << "encoder, decoder and cross: two layers of two heads each";
  for (const HeadEffect& head : effect.heads) {
    EXPECT_DOUBLE_EQ(head.off.value(), analysis::effect_of(pass, question, {{head.path, head.head, 0}}));
  }
  EXPECT_TRUE(std::ranges::is_sorted(effect.heads, std::ranges::greater{},
                                     [](const HeadEffect& one) { return std::abs(one.gradient); }));
}

TEST(Effects, OfAContrastAndOfTooMuch) {
  const decode::Engine engine(text_model(testing::transformer(models::TransformerKind::encoder_decoder), seeded(3)));
  const Trace plain = record(engine, kSentence, {.search = {.max_length = 4}, .alternatives = 3});
  Trace trace = plain;
  const Step& step = trace.output.steps.front();
  const Alternative other = step.alternatives.at(1);
  add_contrast(trace, engine, step.row, static_cast<int32_t>(other.id));
  ASSERT_EQ(trace.effects.size(), 1u);
  EXPECT_EQ(trace.effects[0].against, other.id);
  EXPECT_NEAR(trace.effects[0].value, step.logprob - other.logprob, kTolerance);
  EXPECT_EQ(error_of([&] { add_contrast(trace, engine, 99, 1); }),
            "effects: row is 99, expected one in which something was chosen");
  trace = plain;
  add_effects(trace, engine, {.most_tokens = 1});
  EXPECT_TRUE(trace.effects.empty());
  EXPECT_EQ(trace.capture.dropped.back().substr(0, 11), "effects of ");
}

}  // namespace
}  // namespace heed::trace
