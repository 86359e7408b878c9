// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/patch.h"

#include "heed/analysis/gates.h"
#include "heed/analysis/testing.h"

namespace heed::analysis {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using Kind = models::TransformerKind;

class PatchTest : public AnalysisTest {
 protected:
  double patch(const Question& into, const Question& from, const std::vector<PatchSite>& sites) {
    return patched(pass(), into, from, sites);
  }
};

data::TokenPair other_pair(const data::TokenPair& pair) {
  data::TokenPair other = pair;
  if (other.source.empty()) {
    other.target[1] = 7;
  } else {
    other.source[1] = 8;
  }
  return other;
}

TEST_F(PatchTest, WithItselfChangesNothing) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 1);
    const Question question(*model, pair_for(model->task()));
    HeadOutputs kept;
    question.measure(pass(&kept));
    if (family.name == "bahdanau") {
      EXPECT_TRUE(kept.layers().empty()) << "its contexts are fed to the cell";
      continue;
    }
    ASSERT_FALSE(kept.layers().empty());
    for (const HeadOutputs::Layer& layer : kept.layers()) {
      EXPECT_EQ(patch(question, question, {{.layer = layer.path}}), question.measure(pass())) << layer.path;
    }
  }
}

// All that reaches the output of a tagger with no other way from token to token passes the patched layers: with every
// layer of every token patched, and the same token asked for, the other sentence's value comes out.
TEST_F(PatchTest, OfEveryLayerGivesTheOtherSentence) {
  const auto model = drawn(transformer(Kind::encoder), 2);
  const data::TokenPair pair = pair_for(models::Task::tag), other = other_pair(pair);
  const Target last{.position = 3};
  const Question into(*model, pair, last), from(*model, other, last);
  const double patched_all = patch(into, from, {{"encoder.0.self"}, {"encoder.1.self"}});
  EXPECT_NE(into.measure(pass()), from.measure(pass()));
  EXPECT_NEAR(patched_all, from.measure(pass()), 1e-12);
  const double one_row = patch(into, from, {{"encoder.0.self", -1, {3}}, {"encoder.1.self", -1, {3}}});
  EXPECT_NEAR(one_row, from.measure(pass()), 1e-12) << "the last layers of the token that is asked for";
}

// A head's output is a sum of values: where its rows of the value projection are zero, it is the bias alone, whatever
// it attends to.
TEST_F(PatchTest, OfAHeadIsThatHeadAlone) {
  const auto model = drawn(transformer(Kind::encoder), 3);
  const data::TokenPair pair = pair_for(models::Task::tag);
  const Question into(*model, pair), from(*model, other_pair(pair));
  const double one = patch(into, from, {{"encoder.1.self", 0}}), two = patch(into, from, {{"encoder.1.self", 1}}),
               both = patch(into, from, {{"encoder.1.self", 0}, {"encoder.1.self", 1}}),
               layer = patch(into, from, {{"encoder.1.self"}});
  EXPECT_EQ(both, layer);
  EXPECT_NE(one, two);
  for (const int64_t head : {0, 1}) {
    const Tensor weight = model->parameters().find("encoder.1.self.v.weight")->value.slice(4 * head, 4);
    const Tensor kept = weight.clone();
    weight.fill(0);
    EXPECT_NEAR(patch(into, from, {{"encoder.1.self", head}}), into.measure(pass()), 1e-12)
        << "the same in every sentence, as exactly as weights sum to 1";
    weight.copy_from(kept);
  }
}

TEST_F(PatchTest, LeavesOtherPositionsAlone) {
  const auto model = drawn(transformer(Kind::encoder), 4);
  const data::TokenPair pair = pair_for(models::Task::tag);
  // The last layer's output at one token reaches that token's tag alone.
  for (int64_t asked = 0; asked < 4; ++asked) {
    const Question into(*model, pair, {.position = asked}), from(*model, other_pair(pair), {.position = asked});
    for (int64_t at = 0; at < 4; ++at) {
      const double value = patch(into, from, {{"encoder.1.self", -1, {at}}});
      EXPECT_EQ(value == into.measure(pass()), at != asked) << at << " for " << asked;
    }
  }
}

TEST_F(PatchTest, OfEachHeadIsTheValueOfThatHeadAlone) {
  for (const Family& family : every_family()) {
    SCOPED_TRACE(family.name);
    const auto model = drawn(family.options, 6);
    const Question into(*model, pair_for(model->task()));
    const Question from = question_of(into, other_pair(into.pair()));
    const Patching patching(pass(), into, from);
    EXPECT_EQ(patching.own(), into.measure(pass()));
    EXPECT_EQ(patching.other(), from.measure(pass()));
    const std::vector<HeadValue> heads = patching.heads(), layers = patching.layers();
    EXPECT_EQ(heads.size(), family.name == "bahdanau" ? 0 : family.heads);
    for (const HeadValue& one : heads) EXPECT_EQ(one.value, patch(into, from, {{one.layer, one.head}}));
    for (const HeadValue& one : layers) EXPECT_EQ(one.value, patch(into, from, {{one.layer}}));
  }
}

TEST_F(PatchTest, SaysWhatDoesNotFit) {
  const auto model = drawn(transformer(Kind::encoder), 5);
  const Question into(*model, {{4, 5, 6}, {0, 1, 2}}), from(*model, {{4, 5}, {0, 1}});
  EXPECT_EQ(
      error_of([&] { patch(into, from, {{"encoder.0.self"}}); }),
      "patch: layer 'encoder.0.self' gave [1, 3, 8] for the other sentence, expected [1, 4, 8]: the sentences have "
      "different lengths");
  EXPECT_EQ(error_of([&] { patch(into, into, {{"encoder.0.cross"}}); }),
            "there is no layer 'encoder.0.cross', expected one of: encoder.0.self, encoder.1.self");
  EXPECT_EQ(error_of([&] {
              patch(into, into, {{"encoder.0.self", 2}});
            }),
            "layer 'encoder.0.self' has no head 2, expected 0 to 1");
  EXPECT_EQ(error_of([&] {
              patch(into, into, {{"encoder.0.self", 0, {4}}});
            }),
            "patch: a position of layer 'encoder.0.self' is 4, expected 0 to 3");
  EXPECT_EQ(error_of([&] { question_of(into, from.pair()); }),
            "patch: the other sentence has 2 tokens, expected 3: outputs are taken token by token");
}

}  // namespace
}  // namespace heed::analysis
