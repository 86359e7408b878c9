#include "heed/models/transformer.h"

#include <cmath>

#include "heed/base/error.h"

namespace heed::models {
namespace {

using nn::AttentionRole;
using nn::Pass;

[[noreturn]] void refuse(const std::string& what) { throw Error("transformer: " + what); }

void check(const TransformerOptions& o) {
  check_fields("transformer", o);
  if (o.vocabulary < 1) refuse("vocabulary is " + std::to_string(o.vocabulary) + ", expected 1 or more");
  if (o.width % o.heads != 0) {
    refuse("width is " + std::to_string(o.width) + ", expected a multiple of heads (" + std::to_string(o.heads) + ")");
  }
  if (o.outputs > 0 && o.kind != TransformerKind::encoder) {
    refuse("outputs is " + std::to_string(o.outputs) + ", expected 0 where there is a decoder");
  }
}

nn::AttentionOptions attention_options(const TransformerOptions& o, bool cross) {
  nn::AttentionOptions a{.width = o.width, .heads = o.heads, .kv_heads = o.kv_heads, .dropout = o.attention_dropout};
  a.rotary = o.positions == Positions::rotary && !cross;
  a.alibi = o.positions == Positions::alibi && !cross;
  a.positions = o.max_length;
  return a;
}

}  // namespace

TransformerOptions TransformerOptions::preset(const std::string& name, int64_t vocabulary) {
  TransformerOptions o;
  o.vocabulary = vocabulary;
  if (name == "tiny") {
    o.width = 128, o.heads = 4, o.inner = 512, o.encoder_layers = o.decoder_layers = 2;
  } else if (name == "small") {
    o.width = 256, o.heads = 4, o.inner = 1024, o.encoder_layers = o.decoder_layers = 3;
  } else if (name == "base") {
    o.width = 512, o.heads = 8, o.inner = 2048, o.encoder_layers = o.decoder_layers = 6;
    o.norm = NormPlace::after;
  } else {
    refuse("preset is '" + name + "', expected tiny, small or base");
  }
  return o;
}

TransformerLayer::TransformerLayer(const TransformerOptions& o, const std::string& path, bool with_cross, Rng& rng)
    : self(attention_options(o, false), path + ".self", rng),
      feed_forward(o.width, o.inner, o.gelu ? nn::Activation::gelu : nn::Activation::relu, o.dropout, rng),
      norm_place(o.norm),
      dropout(o.dropout) {
  const nn::NormKind kind = o.rms ? nn::NormKind::rms : nn::NormKind::layer;
  norm_self = nn::Norm(o.width, kind);
  norm_feed_forward = nn::Norm(o.width, kind);
  if (!with_cross) return;
  cross = nn::Attention(attention_options(o, true), path + ".cross", rng);
  norm_cross = nn::Norm(o.width, kind);
}

template <class Part>
Var TransformerLayer::add_part(Pass& pass, const Var& x, const nn::Norm& norm, const Part& part) const {
  const bool before = norm_place == NormPlace::before;
  const Var y = part(before ? norm(pass, x) : x);
  const Var sum = ops::residual_dropout(pass, x, y, pass.next_dropout(dropout));
  return before ? sum : norm(pass, sum);
}

template <class SelfPart, class CrossPart>
Var TransformerLayer::run(Pass& pass, const Var& x, const SelfPart& self_part, const CrossPart& cross_part) const {
  Var y = add_part(pass, x, norm_self, self_part);
  if (!cross.path.empty()) y = add_part(pass, y, norm_cross, cross_part);
  return add_part(pass, y, norm_feed_forward, [&](const Var& z) { return feed_forward(pass, z); });
}

Var TransformerLayer::operator()(Pass& pass, const Var& x, const nn::AttentionCall& self_call,
                                 const LayerSource& source) const {
  return run(
      pass, x, [&](const Var& y) { return self(pass, y, y, self_call); },
      [&](const Var& y) { return cross(pass, y, source.memory, source.call); });
}

Var TransformerLayer::step(Pass& pass, const Var& x, nn::KvCache& past, const CachedLayerSource& source) const {
  return run(
      pass, x, [&](const Var& y) { return self.step(pass, y, past); },
      [&](const Var& y) { return cross.step(pass, y, *source.cache, source.call); });
}

Transformer::Transformer(const TransformerOptions& o, Rng& rng) : options_(o) {
  check(o);
  const bool encodes = o.kind != TransformerKind::decoder, decodes = o.kind != TransformerKind::encoder;
  const nn::NormKind norm_kind = o.rms ? nn::NormKind::rms : nn::NormKind::layer;
  embedding_ = nn::Embedding(o.vocabulary, o.width, rng);
  embedding_.factor = std::sqrt(static_cast<double>(o.width));
  if (encodes && decodes && o.source_vocabulary > 0) {
    source_embedding_ = nn::Embedding(o.source_vocabulary, o.width, rng);
    source_embedding_.factor = embedding_.factor;
  }
  if (o.positions == Positions::learned) {
    positions_ = nn::Embedding(o.max_length, o.width, rng);
    if (encodes && decodes) source_positions_ = nn::Embedding(o.max_length, o.width, rng);
  }
  if (o.positions == Positions::sinusoid) sinusoids_ = nn::sinusoids(o.max_length, o.width);
  for (int64_t i = 0; encodes && i < o.encoder_layers; ++i) {
    encoder_.emplace_back(o, "encoder." + std::to_string(i), false, rng);
  }
  for (int64_t i = 0; decodes && i < o.decoder_layers; ++i) {
    decoder_.emplace_back(o, "decoder." + std::to_string(i), encodes, rng);
  }
  if (o.norm == NormPlace::before && encodes) encoder_norm_ = nn::Norm(o.width, norm_kind);
  if (o.norm == NormPlace::before && decodes) decoder_norm_ = nn::Norm(o.width, norm_kind);
  if (decodes && !o.tied) output_ = nn::Linear(o.width, o.vocabulary, rng);
  if (!decodes && o.outputs > 0) output_ = nn::Linear(o.width, o.outputs, rng);
}

Var Transformer::embed(Pass& pass, const nn::Embedding& table, const nn::Embedding& positions, const Tensor& ids,
                       int64_t position) const {
  const int64_t length = ids.shape(1);
  if (position + length > options_.max_length && options_.positions != Positions::none &&
      options_.positions != Positions::alibi) {
    refuse("a row of " + std::to_string(position + length) + " tokens came, expected at most " +
           std::to_string(options_.max_length) + " (max_length)");
  }
  Var x = table(pass, ids);
  if (options_.positions == Positions::sinusoid) {
    const Tensor rows = sinusoids_.slice(position, length);
    x = ops::add_row(pass, x, x.dtype() == rows.dtype() ? rows : rows.converted(x.dtype()));
  } else if (options_.positions == Positions::learned) {
    x = ops::add_row(pass, x, ops::rows(pass, pass.use(positions.weight), position, length));
  }
  return ops::dropout(pass, x, pass.next_dropout(options_.dropout));
}

Var Transformer::encode(Pass& pass, const Tokens& source) const {
  if (options_.kind == TransformerKind::decoder) refuse("encode was called, expected a model with an encoder");
  check_ids("transformer", "source", source.ids);
  const nn::Embedding& table = source_embedding_.weight.value ? source_embedding_ : embedding_;
  const nn::Embedding& positions = source_positions_.weight.value ? source_positions_ : positions_;
  Var x = embed(pass, table, positions, source.ids, 0);
  const nn::AttentionCall call{AttentionRole::self, lengths_mask(source)};
  for (const TransformerLayer& layer : encoder_) x = layer(pass, x, call);
  if (options_.norm == NormPlace::before) x = encoder_norm_(pass, x);
  return options_.outputs > 0 ? output_(pass, x) : x;
}

Var Transformer::decode(Pass& pass, const Tokens& target, const Var& memory, const Tokens& source) const {
  if (options_.kind == TransformerKind::encoder) refuse("decode was called, expected a model with a decoder");
  check_ids("transformer", "target", target.ids);
  const bool cross = options_.kind == TransformerKind::encoder_decoder;
  if (cross != static_cast<bool>(memory)) {
    refuse(cross ? "memory is missing, expected what encode gave" : "memory came, expected none for a decoder alone");
  }
  Var x = embed(pass, embedding_, positions_, target.ids, 0);
  nn::AttentionCall call{AttentionRole::masked, lengths_mask(target)};
  call.mask.causal = kernels::Causal::top_left();
  const LayerSource looked_at{memory, {AttentionRole::cross, lengths_mask(source)}};
  for (const TransformerLayer& layer : decoder_) x = layer(pass, x, call, looked_at);
  return logits(pass, x);
}

Var Transformer::logits(Pass& pass, const Var& x) const {
  const Var y = options_.norm == NormPlace::before ? decoder_norm_(pass, x) : x;
  return options_.tied ? ops::linear(pass, y, pass.use(embedding_.weight)) : output_(pass, y);
}

nn::State Transformer::begin(Pass& pass, const Tokens& source) const {
  nn::State state;
  state.self.resize(decoder_.size(), {.dtype = pass.cache_dtype});
  if (options_.kind != TransformerKind::encoder_decoder) return state;
  const Var memory = encode(pass, source);
  for (const TransformerLayer& layer : decoder_) state.cross.push_back(layer.cross.remember(pass, memory));
  state.source_lengths.assign(source.lengths.begin(), source.lengths.end());
  if (source.lengths.empty()) {
    state.source_lengths.assign(static_cast<size_t>(source.ids.shape(0)), source.ids.shape(1));
  }
  return state;
}

Var Transformer::step(Pass& pass, const Tensor& ids, nn::State& state) const {
  if (options_.kind == TransformerKind::encoder) refuse("step was called, expected a model with a decoder");
  check_ids("transformer", "ids", ids);
  const size_t with_cross = options_.kind == TransformerKind::encoder_decoder ? decoder_.size() : 0;
  if (state.self.size() != decoder_.size() || state.cross.size() != with_cross) {
    refuse("the state has caches for " + std::to_string(state.self.size()) + " + " +
           std::to_string(state.cross.size()) + " attention layers, expected " + std::to_string(decoder_.size()) +
           " + " + std::to_string(with_cross) + ", as begin gives them");
  }
  Var x = embed(pass, embedding_, positions_, ids, state.length);
  CachedLayerSource source{nullptr, {AttentionRole::cross, kernels::Lengths{state.source_lengths}, state.length}};
  for (size_t i = 0; i < decoder_.size(); ++i) {
    if (with_cross) source.cache = &state.cross[i];
    x = decoder_[i].step(pass, x, state.self[i], source);
  }
  state.length += ids.shape(1);
  return logits(pass, x);
}

}  // namespace heed::models
