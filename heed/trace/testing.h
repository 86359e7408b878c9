// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small model of every family and every kind of attention, with random weights, for tests of traces.
#include <memory>
#include <string>
#include <vector>

#include "heed/base/rng.h"
#include "heed/data/text_model.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"

namespace heed::trace::testing {

struct Family {
  std::string name;
  models::ModelOptions options;
};

inline constexpr int64_t kVocabulary = 9, kTags = 7;

inline models::TransformerOptions transformer(models::TransformerKind kind) {
  models::TransformerOptions o;
  o.kind = kind, o.vocabulary = kVocabulary;
  o.width = 8, o.heads = 2, o.inner = 12, o.max_length = 4096;
  o.encoder_layers = o.decoder_layers = 2;
  if (kind == models::TransformerKind::encoder) o.outputs = kTags;
  return o;
}

inline models::RnnSeq2SeqOptions recurrent(models::Query query, nn::Score score) {
  models::RnnSeq2SeqOptions o;
  o.vocabulary = kVocabulary, o.width = 8, o.query = query, o.score = score;
  if (query == models::Query::none) o.readout = models::Readout::state;
  return o;
}

inline models::SelfAttentiveOptions attentive(models::BaseLayer base, nn::Score score = nn::Score::scaled) {
  models::SelfAttentiveOptions o;
  o.vocabulary = kVocabulary, o.outputs = kTags, o.width = 8, o.max_length = 4096;
  o.layers.base = base, o.layers.score = score;
  return o;
}

inline std::vector<Family> families() {
  using models::BaseLayer, models::Query, nn::Score;
  using Kind = models::TransformerKind;
  std::vector<Family> all = {{"transformer", transformer(Kind::encoder_decoder)},
                             {"transformer-tagger", transformer(Kind::encoder)},
                             {"transformer-lm", transformer(Kind::decoder)},
                             {"rnn", recurrent(Query::none, Score::dot)},
                             {"rnn-dot", recurrent(Query::current, Score::dot)},
                             {"rnn-additive", recurrent(Query::previous, Score::additive)},
                             {"tagger-none", attentive(BaseLayer::none)},
                             {"tagger-fc", attentive(BaseLayer::linear)},
                             {"tagger-cnn", attentive(BaseLayer::conv1d, Score::dot)},
                             {"tagger-rnn", attentive(BaseLayer::rnn, Score::bilinear)},
                             {"tagger-gru", attentive(BaseLayer::gru, Score::additive)},
                             {"tagger-lstm", attentive(BaseLayer::lstm)}};
  models::TransformerOptions grouped = transformer(Kind::decoder);
  grouped.heads = 4, grouped.kv_heads = 2, grouped.positions = models::Positions::rotary;
  all.push_back({"transformer-lm-rotary-grouped", grouped});
  models::TransformerOptions alibi = transformer(Kind::decoder);
  alibi.positions = models::Positions::alibi;
  all.push_back({"transformer-lm-alibi", alibi});
  models::RnnSeq2SeqOptions lstm = recurrent(Query::current, Score::bilinear);
  lstm.cell = nn::Cell::lstm, lstm.layers = 2, lstm.input_feeding = true, lstm.feed = models::Feed::attentional;
  all.push_back({"rnn-lstm-feeding", lstm});
  models::RnnSeq2SeqOptions blocks = recurrent(Query::previous, Score::additive);
  blocks.encoder = models::Encoder::self_attentive, blocks.self_attentive.base = BaseLayer::gru;
  blocks.first_state = models::FirstState::learned;
  all.push_back({"rnn-self-attention", blocks});
  return all;
}

inline std::shared_ptr<const text::Tokenizer> words(const std::string& text) {
  return text::train_tokenizer(std::vector<std::string>{text}, {});
}

// Moved so far from its first weights that what it says depends on what came before.
inline data::TextModel text_model(const models::ModelOptions& options, uint64_t seed) {
  std::shared_ptr<models::Model> model = models::make_model(options, seed);
  Rng rng(seed, 5);
  for (const auto& entry : model->parameters().entries()) {
    for (float& x : entry.value.span<float>()) x += 0.4f * rng.normal();
  }
  const auto tokenizer = words("a b c d e");
  const bool tags = model->task() == models::Task::tag;
  return data::TextModel(model, {tokenizer, tags ? words("X Y Z") : tokenizer}, "m");
}

}  // namespace heed::trace::testing
