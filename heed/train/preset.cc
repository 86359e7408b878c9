#include "heed/train/preset.h"

#include <algorithm>
#include <vector>

#include "heed/base/error.h"
#include "heed/io/nearest.h"

namespace heed::train {
namespace {

using models::Family, models::Task;

constexpr Preset kPresets[] = {
    {"transformer-tiny", Task::translate, "2 + 2 layers of width 128"},
    {"transformer-small", Task::translate, "3 + 3 layers of width 256"},
    {"transformer-base", Task::translate, "that of 2017: 6 + 6 layers of width 512"},
    {"rnn", Task::translate, "GRU encoder and decoder, and one vector between them"},
    {"rnn-attention", Task::translate, "GRUs; the state before a word looks at the source (additive score)"},
    {"rnn-dot", Task::translate, "GRUs; the state after a word looks at the source (dot product)"},
    {"rnn-self-attention", Task::translate, "GRUs; the source's states attend to each other before they are looked at"},
    {"lm-small", Task::language, "a Transformer that goes on with a text"},
    {"self-attentive", Task::tag, "GRU states that attend to each other; a tag for each word"},
    {"tagger", Task::tag, "a Transformer's encoder; a tag for each word"},
};

void set_dropout(models::ModelOptions& options, double dropout) {
  const auto rate = static_cast<float>(dropout);
  options.transformer.dropout = options.rnn_seq2seq.dropout = options.self_attentive.dropout = rate;
}

models::ModelOptions recurrent(models::Query query, nn::Score score, int64_t vocabulary) {
  models::ModelOptions options{.family = Family::rnn_seq2seq};
  options.rnn_seq2seq.vocabulary = vocabulary;
  options.rnn_seq2seq.query = query;
  options.rnn_seq2seq.score = score;
  if (query == models::Query::none) options.rnn_seq2seq.readout = models::Readout::state;
  return options;
}

}  // namespace

std::span<const Preset> presets() { return kPresets; }

std::string preset_names() {
  std::string names;
  for (const Preset& preset : kPresets) {
    const bool last = &preset == std::end(kPresets) - 1;
    names += (names.empty() ? "" : last ? " or " : ", ") + std::string(preset.name);
  }
  return names;
}

const Preset& preset_named(const std::string& name) {
  std::vector<std::string> known;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    known.emplace_back(preset.name);
  }
  const auto meant = io::nearest(name, known);
  throw Error("preset is '" + name + "', expected " + preset_names() +
              (meant ? ": did you mean '" + *meant + "'?" : ""));
}

models::ModelOptions model_options(const Preset& preset, const Vocabularies& n, double dropout) {
  const std::string name = preset.name, family = "transformer-";
  models::ModelOptions options;
  if (name.starts_with(family)) {
    options.transformer = models::TransformerOptions::preset(name.substr(family.size()), n.source);
  } else if (name == "lm-small") {
    options.transformer = models::TransformerOptions::preset("small", n.source);
    options.transformer.kind = models::TransformerKind::decoder;
  } else if (name == "tagger") {
    options.transformer = models::TransformerOptions::preset("tiny", n.source);
    options.transformer.kind = models::TransformerKind::encoder;
    options.transformer.outputs = n.tags;
  } else if (name == "self-attentive") {
    options.family = Family::self_attentive;
    options.self_attentive.vocabulary = n.source;
    options.self_attentive.outputs = n.tags;
    options.self_attentive.layers.base = models::BaseLayer::gru;
  } else if (name == "rnn") {
    options = recurrent(models::Query::none, nn::Score::dot, n.source);
  } else if (name == "rnn-attention") {
    options = recurrent(models::Query::previous, nn::Score::additive, n.source);
  } else if (name == "rnn-self-attention") {
    options = recurrent(models::Query::previous, nn::Score::additive, n.source);
    options.rnn_seq2seq.encoder = models::Encoder::self_attentive;
    options.rnn_seq2seq.self_attentive.base = models::BaseLayer::gru;
    options.rnn_seq2seq.first_state = models::FirstState::mean;
  } else {
    options = recurrent(models::Query::current, nn::Score::dot, n.source);  // rnn-dot
  }
  if (dropout >= 0) set_dropout(options, dropout);
  return options;
}

}  // namespace heed::train
