// SPDX-License-Identifier: Apache-2.0
#include "heed/models/presets.h"

#include <vector>

#include "heed/base/error.h"
#include "heed/io/nearest.h"

namespace heed::models {
namespace {

const std::vector<Preset>& table() {
  // A tagger's outputs are set with its vocabulary; any number above 0 says that it has some.
  static const std::vector<Preset> kPresets = {
      {"transformer-tiny", "2 + 2 layers of width 128",
       TransformerOptions{.width = 128, .heads = 4, .inner = 512, .encoder_layers = 2, .decoder_layers = 2}},
      {"transformer-small", "3 + 3 layers of width 256",
       TransformerOptions{.width = 256, .heads = 4, .inner = 1024, .encoder_layers = 3, .decoder_layers = 3}},
      {"transformer-base", "that of 2017: 6 + 6 layers of width 512",
       TransformerOptions{.width = 512,
                          .heads = 8,
                          .inner = 2048,
                          .encoder_layers = 6,
                          .decoder_layers = 6,
                          .norm = NormPlace::after}},
      {"rnn", "GRU encoder and decoder, and one vector between them",
       RnnSeq2SeqOptions{.query = Query::none, .score = nn::Score::dot, .readout = Readout::state}},
      {"rnn-attention", "GRUs; the state before a word attends to the source (additive score)",
       RnnSeq2SeqOptions{.query = Query::previous, .score = nn::Score::additive}},
      {"rnn-dot", "GRUs; the state after a word attends to the source (dot product)",
       RnnSeq2SeqOptions{.query = Query::current, .score = nn::Score::dot}},
      {"rnn-self-attention", "GRUs; the source's states attend to each other before they are looked at",
       RnnSeq2SeqOptions{.encoder = Encoder::self_attentive,
                         .self_attentive = {.base = BaseLayer::gru},
                         .first_state = FirstState::mean,
                         .query = Query::previous,
                         .score = nn::Score::additive}},
      {"lm-small", "a Transformer that goes on with a text",
       TransformerOptions{
           .kind = TransformerKind::decoder, .width = 256, .heads = 4, .inner = 1024, .decoder_layers = 3}},
      {"lm-long", "the same for long texts: rotary positions, up to 16,384 tokens",
       TransformerOptions{.kind = TransformerKind::decoder,
                          .width = 256,
                          .heads = 4,
                          .inner = 1024,
                          .decoder_layers = 3,
                          .max_length = 16384,
                          .positions = Positions::rotary}},
      {"self-attentive", "GRU states that attend to each other; a tag for each word",
       SelfAttentiveOptions{.outputs = 1, .layers = {.base = BaseLayer::gru}}},
      {"tagger", "a Transformer's encoder; a tag for each word",
       TransformerOptions{.kind = TransformerKind::encoder,
                          .width = 128,
                          .heads = 4,
                          .inner = 512,
                          .encoder_layers = 2,
                          .outputs = 1}},
  };
  return kPresets;
}

void set_sizes(TransformerOptions& o, const Vocabularies& n) {
  o.vocabulary = n.target > 0 ? n.target : n.source;
  o.source_vocabulary = n.target > 0 ? n.source : 0;
  if (o.kind == TransformerKind::encoder) o.vocabulary = n.source, o.source_vocabulary = 0, o.outputs = n.tags;
}
void set_sizes(RnnSeq2SeqOptions& o, const Vocabularies& n) {
  o.vocabulary = n.target > 0 ? n.target : n.source;
  o.source_vocabulary = n.target > 0 ? n.source : 0;
}
void set_sizes(SelfAttentiveOptions& o, const Vocabularies& n) { o.vocabulary = n.source, o.outputs = n.tags; }

}  // namespace

std::span<const Preset> presets() { return table(); }

std::string preset_names() {
  std::string names;
  for (const Preset& preset : presets()) {
    const bool last = &preset == &presets().back();
    names += (names.empty() ? "" : last ? " or " : ", ") + std::string(preset.name);
  }
  return names;
}

const Preset& preset_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    known.emplace_back(preset.name);
  }
  const auto meant = io::nearest(name, known);
  throw Error("preset is '" + name + "', expected " + preset_names() +
              (meant ? ": did you mean '" + *meant + "'?" : ""));
}

void set_vocabularies(ModelOptions& options, const Vocabularies& vocabularies) {
  std::visit([&](auto& own) { set_sizes(own, vocabularies); }, options.family);
}

void set_dropout(ModelOptions& options, double dropout) {
  std::visit([&](auto& own) { own.dropout = static_cast<float>(dropout); }, options.family);
}

ModelOptions model_options(const Preset& preset, const Vocabularies& vocabularies, double dropout) {
  ModelOptions options = preset.options;
  set_vocabularies(options, vocabularies);
  if (dropout >= 0) set_dropout(options, dropout);
  return options;
}

}  // namespace heed::models
