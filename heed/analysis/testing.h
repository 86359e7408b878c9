// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of analysis share: a small random model of every family, in double, and questions about it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/models/model.h"
#include "heed/nn/pass.h"

namespace heed::analysis::testing {

using heed::testing::error_of;
using heed::testing::seeded;

inline constexpr int64_t kWords = 9;  // of every vocabulary
inline constexpr int64_t kTags = 4;

// Parameters far from zero, so that every part matters.
inline std::unique_ptr<models::Model> drawn(const models::ModelOptions& options, uint64_t seed,
                                            DType dtype = DType::f64) {
  auto model = models::make_model(options, seeded(seed), DType::f64);
  Rng rng(seeded(seed), 11);
  for (const auto& entry : model->parameters().entries()) {
    for (double& x : entry.value.span<double>()) x += 0.4 * double{rng.normal()};
  }
  if (dtype == DType::f64) return model;
  auto single = models::make_model(options, seeded(seed), dtype);
  for (const auto& entry : model->parameters().entries()) {
    single->parameters().find(entry.name)->value.copy_from(entry.value.converted(dtype));
  }
  return single;
}

inline models::TransformerOptions transformer(models::TransformerKind kind) {
  models::TransformerOptions o;
  o.kind = kind;
  o.vocabulary = kWords;
  o.width = 8, o.heads = 2, o.inner = 12, o.max_length = 40;
  o.encoder_layers = o.decoder_layers = 2;
  o.activation = nn::Activation::gelu;  // smooth: differences have an error of second order everywhere
  if (kind == models::TransformerKind::encoder) o.outputs = kTags;
  return o;
}

inline models::RnnSeq2SeqOptions recurrent(models::Query query, bool input_feeding = false) {
  models::RnnSeq2SeqOptions o;
  o.vocabulary = kWords;
  o.width = 6, o.max_length = 40;
  o.query = query;
  o.input_feeding = input_feeding;
  if (query == models::Query::none) o.readout = models::Readout::state;
  return o;
}

inline models::SelfAttentiveOptions self_attentive(models::BaseLayer base) {
  models::SelfAttentiveOptions o;
  o.vocabulary = kWords, o.outputs = kTags, o.width = 6, o.max_length = 40;
  o.layers.base = base, o.layers.blocks = 2;
  return o;
}

struct Family {
  std::string name;
  models::ModelOptions options;
  size_t heads;  // of all layers
};

// Every family that has attention, and every way in which its layers are called.
inline std::vector<Family> every_family() {
  using Kind = models::TransformerKind;
  models::TransformerOptions grouped = transformer(Kind::encoder_decoder);
  grouped.kv_heads = 1, grouped.norm = models::NormPlace::before;
  models::RnnSeq2SeqOptions blocks = recurrent(models::Query::current);
  blocks.encoder = models::Encoder::self_attentive;
  blocks.first_state = models::FirstState::learned;
  return {{"encoder_decoder", transformer(Kind::encoder_decoder), 12},
          {"grouped", grouped, 12},
          {"encoder", transformer(Kind::encoder), 4},
          {"decoder", transformer(Kind::decoder), 4},
          {"bahdanau", recurrent(models::Query::previous), 1},
          {"luong", recurrent(models::Query::current), 1},
          {"input_feeding", recurrent(models::Query::current, true), 1},
          {"blocks", blocks, 3},
          {"tagger", self_attentive(models::BaseLayer::lstm), 2},
          {"tagger_linear", self_attentive(models::BaseLayer::linear), 2}};
}

// An input and an output that fit the model's task.
inline data::TokenPair pair_for(models::Task task) {
  if (task == models::Task::language) return {{}, {5, 3, 8, 4}};
  if (task == models::Task::tag) return {{4, 7, 3, 6}, {1, 3, 0, 2}};
  return {{4, 7, 3, 6, 5}, {5, 8, 4}};
}

class AnalysisTest : public ::testing::Test {
 protected:
  nn::Pass pass(nn::Observer* observer = nullptr) {
    nn::Pass p{{parallel_, workspace_}};
    p.observer = observer;
    return p;
  }

  Parallel parallel_{1};
  Workspace workspace_;
};

}  // namespace heed::analysis::testing
