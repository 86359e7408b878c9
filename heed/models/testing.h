// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests of models share: shrunken Transformers, and batches for any model.
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/io/config.h"
#include "heed/models/model.h"
#include "heed/models/transformer.h"
#include "heed/nn/testing.h"

namespace heed::models::testing {

using namespace nn::testing;  // NOLINT(google-build-using-namespace): models are tested with what layers are

inline constexpr int32_t kVocabulary = 7, kSourceVocabulary = 9;

// Small in every way, but with every part there.
inline TransformerOptions shrunken(TransformerKind kind, Positions positions, NormPlace norm) {
  TransformerOptions o;
  o.kind = kind;
  o.vocabulary = kVocabulary;
  o.width = 8, o.heads = 2, o.inner = 12, o.max_length = 96;
  o.encoder_layers = o.decoder_layers = 2;
  o.dropout = 0.2f, o.attention_dropout = 0.1f;
  o.norm = norm;
  o.positions = positions;
  return o;
}

// The name that a config gives a choice.
template <class E>
std::string label(E value) {
  for (const auto& one : enum_names(value)) {
    if (one.value == value) return std::string(one.name);
  }
  return "?";
}

inline std::string name_of(const TransformerOptions& o) {
  std::string text = label(o.kind) + "_norm_" + label(o.norm) + "_" + label(o.positions);
  text += std::string(o.rms ? "_rms" : "") + "_" + label(o.activation) + (o.tied ? "_tied" : "");
  text += std::string(o.outputs ? "_outputs" : "") + (o.kv_heads ? "_grouped" : "");
  text += std::string(o.gated ? "_gated" : "") + (o.bias ? "" : "_no_bias") + (o.embedding_norm ? "_normed" : "");
  text += std::string(o.head_width ? "_head_width" : "") + (o.token_types ? "_types" : "");
  text += std::string(o.first_position ? "_from" : "") + (o.embedding_scale != 0 ? "_scale" : "");
  if (o.output_bias != OutputBias::if_untied) text += "_output_bias_" + label(o.output_bias);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

// The options that well-known models have and heed's own do not, in turn.
inline TransformerOptions with_more(TransformerOptions o, int turn) {
  constexpr nn::Activation kSmooth[] = {nn::Activation::silu, nn::Activation::gelu_tanh, nn::Activation::gelu};
  o.activation = kSmooth[turn % 3];
  o.gated = turn % 2 == 0;
  o.bias = turn / 2 % 2 == 0;
  o.embedding_norm = turn / 3 % 2 == 0;
  o.norm_eps = 1e-2;
  o.rotary_base = 100;
  if (turn % 3 != 1) o.head_width = 6;
  if (turn % 3 == 0) o.embedding_scale = 1.5;
  if (turn % 2 == 1 && o.kind != TransformerKind::decoder) o.token_types = 2;
  o.output_bias = static_cast<OutputBias>(turn % 3);
  o.sinusoid_layout = nn::SinusoidLayout::halves;
  if (o.positions == Positions::sinusoid || o.positions == Positions::learned) o.first_position = 1 + turn % 3;
  return o;
}

// Every kind of model, order of norms and kind of positions; the other options take turns, each with each of these.
inline std::vector<TransformerOptions> every_kind() {
  std::vector<TransformerOptions> all;
  int turn = 0;
  for (const auto& kind : enum_names(TransformerKind{})) {
    for (const auto& norm : enum_names(NormPlace{})) {
      for (const auto& positions : enum_names(Positions{})) {
        TransformerOptions o = shrunken(kind.value, positions.value, norm.value);
        ++turn;
        o.rms = turn % 2 == 0;
        o.activation = turn / 2 % 2 == 0 ? nn::Activation::gelu : nn::Activation::relu;
        o.tied = turn % 3 != 0;
        if (turn % 4 == 1) o.kv_heads = 1;
        if (kind.value == TransformerKind::encoder && turn % 5 != 0) o.outputs = 3;
        if (kind.value == TransformerKind::encoder_decoder && turn % 3 == 1) o.source_vocabulary = kSourceVocabulary;
        all.push_back(o);
        all.push_back(with_more(o, turn));
      }
    }
  }
  return all;
}

inline std::vector<TransformerOptions> every_decoder() {
  std::vector<TransformerOptions> all = every_kind();
  std::erase_if(all, [](const TransformerOptions& o) { return o.kind == TransformerKind::encoder; });
  return all;
}

// A source and a target of which the rows have different lengths.
struct Batch {
  template <class Options>
  Batch(const Options& o, int64_t B, int64_t S, int64_t T, Rng& rng) {
    source.ids = draw_tokens({B, S}, o.source_vocabulary ? o.source_vocabulary : o.vocabulary, rng);
    if constexpr (requires { o.token_types; }) {
      if (o.token_types > 0) source.types = draw_tokens({B, S}, o.token_types, rng);
    }
    target.ids = draw_tokens({B, T}, o.vocabulary, rng);
    for (int64_t b = 0; b < B; ++b) {
      source_lengths.push_back(std::max<int64_t>(1, S - b));
      target_lengths.push_back(std::max<int64_t>(1, T - b));
    }
    source.lengths = source_lengths;
    target.lengths = target_lengths;
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  Tokens source, target;
  std::vector<int64_t> source_lengths, target_lengths;
};

// The model's output for a batch: logits, or the states of an encoder alone.
inline Var run(const Transformer& model, nn::Pass& pass, const Batch& batch) {
  const TransformerKind kind = model.options().kind;
  if (model.options().outputs > 0) return model.tag(pass, batch.source);
  const Var memory = kind == TransformerKind::decoder ? Var() : model.encode(pass, batch.source);
  return kind == TransformerKind::encoder ? memory : model.decode(pass, batch.target, memory, batch.source);
}

// Row t of x [B,T,E].
inline Tensor row_of(const Tensor& x, int64_t t) {
  const int64_t B = x.shape(0), T = x.shape(1), E = x.shape(2);
  Tensor row = Tensor::uninitialised({B, 1, E});
  for (int64_t b = 0; b < B; ++b) std::copy_n(x.data<float>() + (b * T + t) * E, E, row.data<float>() + b * E);
  return row;
}

// Columns [begin, end) of ids [B,T].
inline Tensor columns_of(const Tensor& ids, int64_t begin, int64_t end) {
  const int64_t B = ids.shape(0), T = ids.shape(1), n = end - begin;
  Tensor part = Tensor::uninitialised({B, n}, DType::i32);
  for (int64_t b = 0; b < B; ++b) std::copy_n(ids.data<int32_t>() + b * T + begin, n, part.data<int32_t>() + b * n);
  return part;
}

// ids [B,T] with `more` columns of zeros after them.
inline Tensor with_padding(const Tensor& ids, int64_t more) {
  const int64_t B = ids.shape(0), T = ids.shape(1);
  Tensor wider = Tensor::zeros({B, T + more}, DType::i32);
  for (int64_t b = 0; b < B; ++b) {
    std::copy_n(ids.data<int32_t>() + b * T, T, wider.data<int32_t>() + b * (T + more));
  }
  return wider;
}

// The same model, saved to its two files and loaded again.
inline std::unique_ptr<Model> saved_and_loaded(const Model& model) {
  const heed::testing::TemporaryFolder folder;
  io::write_config(folder.file("config"), model.options());
  save_parameters(model.parameters(), folder.file("parameters"));
  ModelOptions options;
  io::read_config(folder.file("config"), options);
  auto loaded = make_unfilled_model(options);
  load_parameters(folder.file("parameters"), loaded->parameters());
  return loaded;
}

}  // namespace heed::models::testing
