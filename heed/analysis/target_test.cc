// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/target.h"

#include <cmath>

#include "heed/analysis/testing.h"
#include "heed/data/batch.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

class TargetTest : public AnalysisTest {
 protected:
  // log p of every token at every position, from the logits and the definition of a softmax.
  std::vector<std::vector<double>> log_probabilities(const models::Model& model, const data::TokenPair& pair) {
    const data::Batch batch = data::pair_batch(std::span(&pair, 1), std::vector<size_t>{0});
    nn::Pass p = pass();
    const Tensor logits = model.logits(p, data::source_tokens(batch), data::target_tokens(batch, model.task())).value();
    std::vector<std::vector<double>> all;
    for (int64_t t = 0; t < logits.shape(1); ++t) {
      const double* row = logits.data<double>() + t * logits.shape(2);
      double sum = 0;
      for (int64_t v = 0; v < logits.shape(2); ++v) sum += std::exp(row[v]);
      auto& here = all.emplace_back();
      for (int64_t v = 0; v < logits.shape(2); ++v) here.push_back(row[v] - std::log(sum));
    }
    return all;
  }
};

TEST_F(TargetTest, IsTheLogProbabilityOfItsDefinition) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 1);
    const data::TokenPair pair = pair_for(model->task());
    const auto expected = log_probabilities(*model, pair);
    const auto value = [&](const Target& target) { return Question(*model, pair, target).measure(pass()); };
    std::vector<int32_t> labels = pair.target;
    if (model->task() != models::Task::tag) labels.push_back(2);
    EXPECT_EQ(Question(*model, pair).labels(), labels);
    double sum = 0;
    for (size_t t = 0; t < labels.size(); ++t) {
      const double one = expected[t][static_cast<size_t>(labels[t])];
      sum += one;
      const auto at = static_cast<int64_t>(t);
      EXPECT_NEAR(value({.position = at}), one, 1e-12);
      EXPECT_NEAR(value({.position = at, .token = 3}), expected[t][3], 1e-12);
      EXPECT_NEAR(value({.position = at, .against = 2}), one - expected[t][2], 1e-12);
      EXPECT_NEAR(value({.position = at, .token = 1, .against = 2}), expected[t][1] - expected[t][2], 1e-12);
    }
    EXPECT_NEAR(value({}), sum, 1e-12);
  }
}

TEST_F(TargetTest, SaysWhatDoesNotFit) {
  const auto translator = drawn(transformer(models::TransformerKind::encoder_decoder), 2),
             tagger = drawn(transformer(models::TransformerKind::encoder), 2),
             language = drawn(transformer(models::TransformerKind::decoder), 2);
  const auto error = [](const models::Model& model, const data::TokenPair& pair, const Target& target = {}) {
    return error_of([&] { Question(model, pair, target); });
  };
  EXPECT_EQ(error(*translator, {{}, {4}}), "target: the source has no token, expected at least 1");
  EXPECT_EQ(error(*translator, {{9}, {4}}), "target: an id of the source is 9, expected 0 to 8");
  EXPECT_EQ(error(*translator, {{3}, {-1}}), "target: an id of the output is -1, expected 0 to 8");
  EXPECT_EQ(error(*translator, {{3}, {4}}, {.position = 2}), "target: position is 2, expected 0 to 1");
  EXPECT_EQ(error(*translator, {{3}, {4}}, {.position = 0, .token = 9}), "target: token is 9, expected 0 to 8");
  EXPECT_EQ(error(*translator, {{3}, {4}}, {.position = 0, .against = 9}), "target: against is 9, expected 0 to 8");
  EXPECT_EQ(error(*translator, {{3}, {4}}, {.token = 3}), "target: a token came without a position, expected both");
  EXPECT_EQ(error(*translator, {std::vector<int32_t>(40, 3), {4}}), "target: 40 tokens came, expected at most 39");
  EXPECT_EQ(error(*tagger, {{3, 4}, {1}}), "target: the output has 1 labels, expected 2");
  EXPECT_EQ(error(*language, {{3}, {4}}), "target: a source came, expected none for a language model");
  models::TransformerOptions alone = transformer(models::TransformerKind::encoder);
  alone.outputs = 0;
  EXPECT_EQ(error(*drawn(alone, 2), {{3}, {4}}),
            "target: the model has no output, expected one that translates, tags or goes on with a text");
}

}  // namespace
}  // namespace heed::analysis
