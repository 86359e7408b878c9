// SPDX-License-Identifier: Apache-2.0
#include "heed/models/self_attentive.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/models/model.h"
#include "heed/models/recurrent_testing.h"

namespace heed::models {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using testing::deviation, testing::label, testing::Machine, testing::name_of, testing::same_bits, testing::Source;

// Of each token and block: sums over inputs (8), states (4), gates (16), scores (8) and keys (4). Scores without a
// scale are as large as ten, and as much more felt.
double additions_of(const SelfAttentiveOptions& o, int64_t S) {
  return 2.0 * static_cast<double>(S * o.layers.blocks) * (12 + 16 + 12 + 10) * 2 + 60;
}

class SelfAttentiveVariant : public ::testing::TestWithParam<SelfAttentiveOptions> {
 protected:
  Machine machine;
  nn::Pass pass = machine.pass();
  Rng rng{seeded(31)};
  SelfAttentive model{GetParam(), rng};
  ParameterStore store{model};
  void SetUp() override { testing::scatter(store, 31); }
};

TEST_P(SelfAttentiveVariant, HasExactGradients) {
  const SelfAttentiveOptions options = GetParam();
  const Source batch(options, 2, 4, rng);
  const auto make = [&] {
    Rng weights(seeded(12));
    return SelfAttentive(options, weights);
  };
  const auto use = [&](const SelfAttentive& made, nn::Pass& run_pass, std::span<const Var>) {
    return made.logits(run_pass, batch.source);
  };
  const double additions = additions_of(options, 4);
  testing::check_layer(make, {}, use, {.training = true, .additions = additions, .seed = seeded(13)});
}

TEST_P(SelfAttentiveVariant, WhatStandsInPaddingDoesNotMatter) {
  constexpr int64_t B = 3, S = 6;
  const Source batch(GetParam(), B, S, rng);
  const Tensor before = model.logits(pass, batch.source).value();
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = batch.source_lengths[b]; s < S; ++s) {
      int32_t& id = batch.source.ids.data<int32_t>()[b * S + s];
      id = (id + 1) % testing::kVocabulary;
    }
  }
  const Tensor after = model.logits(pass, batch.source).value();
  const int64_t rows = before.shape(1), width = before.shape(2);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t real = rows == 1 ? 1 : batch.source_lengths[b];
    const auto part = [&](const Tensor& x) { return x.slice(b, 1).reshaped({rows, width}).slice(0, real); };
    EXPECT_TRUE(same_bits(part(after), part(before))) << "row " << b;
  }
}

TEST_P(SelfAttentiveVariant, MorePaddingChangesOnlyRounding) {
  constexpr int64_t B = 3, S = 6, more = 5;
  const Source batch(GetParam(), B, S, rng);
  const Tensor before = model.logits(pass, batch.source).value();
  const Tensor wider = testing::with_padding(batch.source.ids, more);
  const Tensor after = model.logits(pass, {wider, batch.source.lengths}).value();
  const int64_t rows = before.shape(1), width = before.shape(2), most = after.shape(1);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t real = rows == 1 ? 1 : batch.source_lengths[b];
    EXPECT_LE(deviation(after.slice(b, 1).reshaped({most, width}).slice(0, real),
                        before.slice(b, 1).reshaped({rows, width}).slice(0, real)),
              additions_of(GetParam(), S) * testing::kUnit)
        << "row " << b;
  }
}

TEST_P(SelfAttentiveVariant, TellsAnObserverOfEachBlock) {
  struct : nn::Observer {
    std::vector<std::string> told;
    void attention(const nn::AttentionEvent& e) override { told.push_back(e.path + " " + nn::name_of(e.role)); }
  } listener;
  pass.observer = &listener;
  model.logits(pass, Source(GetParam(), 2, 5, rng).source);
  std::vector<std::string> expected;
  for (int64_t i = 0; GetParam().layers.attention && i < GetParam().layers.blocks; ++i) {
    expected.push_back("blocks." + std::to_string(i) + ".self self");
  }
  EXPECT_EQ(listener.told, expected);
}

TEST_P(SelfAttentiveVariant, TellsOfEachRecurrentLayer) {
  struct : nn::Observer {
    std::vector<std::string> told;
    bool wants_recurrent() const override { return true; }
    void recurrent(const nn::RecurrentEvent& e) override { told.push_back(e.path); }
  } listener;
  pass.observer = &listener;
  model.logits(pass, Source(GetParam(), 2, 5, rng).source);
  std::vector<std::string> expected;
  for (int64_t i = 0; GetParam().layers.base >= BaseLayer::rnn && i < GetParam().layers.blocks; ++i) {
    const std::string path = "blocks." + std::to_string(i) + ".recurrent.layers.0";
    expected.push_back(path + ".forward");
    if (GetParam().bidirectional) expected.push_back(path + ".backward");
  }
  EXPECT_EQ(listener.told, expected);
  for (const std::string& path : expected) EXPECT_TRUE(store.find(path + ".w_hh")) << path;
}

TEST_P(SelfAttentiveVariant, ComesBackFromItsFolder) {
  const auto made = make_model(GetParam(), seeded(5));
  const auto loaded = testing::saved_and_loaded(*made);
  EXPECT_EQ(loaded->task(), GetParam().head == SelfAttentiveHead::tags ? Task::tag : Task::classify);
  const Source batch(GetParam(), 2, 4, rng);
  EXPECT_TRUE(same_bits(loaded->logits(pass, batch.source, {}).value(), made->logits(pass, batch.source, {}).value()));
  EXPECT_EQ(error_of([&] { loaded->begin(pass, batch.source); }),
            "self_attentive: begin was called, expected a model with a target");
}

INSTANTIATE_TEST_SUITE_P(All, SelfAttentiveVariant, ::testing::ValuesIn(testing::every_self_attentive()),
                         [](const auto& one) { return std::to_string(one.index) + "_" + name_of(one.param); });

// With no base layer and the dot score, c is softmax(x x^T) x of the embeddings: parameter-free self-attention.
TEST(SelfAttentive, WithoutABaseLayerIsParameterFree) {
  Rng rng(seeded(2));
  SelfAttentive model(
      {.vocabulary = 7, .outputs = 2, .layers = {.base = BaseLayer::none, .score = nn::Score::dot}, .width = 4}, rng);
  const ParameterStore store(model);
  EXPECT_EQ(store.entries().size(), 3u);  // the embeddings, and the output's weight and bias
  EXPECT_TRUE(store.find("output.weight")->value.shape() == Shape({2, 8}));
}

TEST(SelfAttentive, SaysWhatDoesNotFit) {
  const auto made = [](const auto& change) {
    SelfAttentiveOptions o{.vocabulary = 5, .outputs = 3, .width = 4};
    change(o);
    Rng rng(seeded(1));
    return error_of([&] { SelfAttentive(o, rng); });
  };
  EXPECT_EQ(made([](auto&) {}), "no error");
  EXPECT_EQ(made([](auto& o) { o.outputs = 0; }), "self_attentive: outputs is 0, expected 1 or more");
  EXPECT_EQ(made([](auto& o) { o.layers = {.base = BaseLayer::conv1d, .taps = 4}; }),
            "conv1d: taps is 4, expected an odd number");
}

}  // namespace
}  // namespace heed::models
