// SPDX-License-Identifier: Apache-2.0
#include "heed/models/transformer.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed::models {
namespace {

using nn::AttentionRole;
using nn::Pass;

[[noreturn]] void fail(const std::string& what) { throw Error("transformer: " + what); }

void check(const TransformerOptions& o) {
  check_fields("transformer", o);
  if (o.vocabulary < 1) fail("vocabulary is " + std::to_string(o.vocabulary) + ", expected 1 or more");
  if (o.head_width == 0 && o.width % o.heads != 0) {
    fail("width is " + std::to_string(o.width) + ", expected a multiple of heads (" + std::to_string(o.heads) + ")");
  }
  if (o.outputs > 0 && o.kind != TransformerKind::encoder) {
    fail("outputs is " + std::to_string(o.outputs) + ", expected 0 where there is a decoder");
  }
  if (o.token_types > 0 && o.kind == TransformerKind::decoder) {
    fail("token_types is " + std::to_string(o.token_types) + ", expected 0 where there is no encoder");
  }
}

nn::AttentionOptions attention_options(const TransformerOptions& o, bool cross) {
  nn::AttentionOptions a{.width = o.width, .heads = o.heads, .kv_heads = o.kv_heads, .dropout = o.attention_dropout};
  a.rotary = o.positions == Positions::rotary && !cross;
  a.alibi = o.positions == Positions::alibi && !cross;
  a.positions = o.max_length;
  a.key_width = a.value_width = o.head_width;
  a.rotary_base = o.rotary_base;
  a.bias = o.bias;
  return a;
}

nn::Norm norm_of(const TransformerOptions& o, nn::Init init) {
  return nn::Norm(o.width, init, o.norm_kind(), o.norm_eps);
}

// Of the first positions, as many as fit into 4 MB; those of others are computed when they are used.
Tensor kept_sinusoids(const TransformerOptions& o) {
  constexpr int64_t kKept = int64_t{1} << 20;
  return nn::sinusoids(std::min(o.max_length, kKept / o.width), o.width,
                       {.layout = o.sinusoid_layout, .first_position = o.first_position});
}

void report_hidden(Pass& pass, const std::string& path, nn::TextSide side, int64_t position, const Var& states) {
  if (pass.observer) pass.observer->hidden({path, side, position, states.value()});
}

void check_types(const Tokens& tokens, int64_t token_types) {
  if (!tokens.types) return;
  if (token_types == 0) fail("types came, expected none for a model without token types");
  if (tokens.types.shape() != tokens.ids.shape() || tokens.types.dtype() != DType::i32) {
    fail("types has shape " + to_string(tokens.types.shape()) + " in " + name_of(tokens.types.dtype()) + ", expected " +
         to_string(tokens.ids.shape()) + " in i32, as the ids have");
  }
}

}  // namespace

TransformerLayer::TransformerLayer(const TransformerOptions& o, const std::string& path, bool with_cross, nn::Init init)
    : self(attention_options(o, false), path + ".self", init),
      feed_forward({.width = o.width,
                    .inner = o.inner,
                    .activation = o.activation,
                    .gated = o.gated,
                    .bias = o.bias,
                    .dropout = o.dropout},
                   init),
      norm_place(o.norm),
      dropout(o.dropout) {
  norm_self = norm_of(o, init);
  norm_feed_forward = norm_of(o, init);
  if (!with_cross) return;
  cross = nn::Attention(attention_options(o, true), path + ".cross", init);
  norm_cross = norm_of(o, init);
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

Transformer::Transformer(const TransformerOptions& o, nn::Init init) : options_(o) {
  check(o);
  const bool encodes = o.kind != TransformerKind::decoder, decodes = o.kind != TransformerKind::encoder;
  embedding_ = nn::Embedding(o.vocabulary, o.width, init);
  embedding_.factor = o.embedding_factor();
  embedding_.tied = decodes && o.tied;
  if (encodes && decodes && o.source_vocabulary > 0) {
    source_embedding_ = nn::Embedding(o.source_vocabulary, o.width, init);
    source_embedding_.factor = embedding_.factor;
  }
  if (o.positions == Positions::learned) {
    const int64_t rows = o.first_position + o.max_length;
    positions_ = nn::Embedding(rows, o.width, init);
    if (encodes && decodes) source_positions_ = nn::Embedding(rows, o.width, init);
  }
  if (o.positions == Positions::sinusoid) sinusoids_ = kept_sinusoids(o);
  if (o.token_types > 0) token_types_ = nn::Embedding(o.token_types, o.width, init);
  if (o.embedding_norm) embedding_norm_ = norm_of(o, init);
  if (o.embedding_norm && encodes && decodes) source_embedding_norm_ = norm_of(o, init);
  for (int64_t i = 0; encodes && i < o.encoder_layers; ++i) {
    encoder_.emplace_back(o, "encoder." + std::to_string(i), false, init);
  }
  for (int64_t i = 0; decodes && i < o.decoder_layers; ++i) {
    decoder_.emplace_back(o, "decoder." + std::to_string(i), encodes, init);
  }
  if (o.norm == NormPlace::before && encodes) encoder_norm_ = norm_of(o, init);
  if (o.norm == NormPlace::before && decodes) decoder_norm_ = norm_of(o, init);
  const bool tied = decodes && o.tied;
  const bool output_bias = o.output_bias == OutputBias::always || (o.output_bias == OutputBias::if_untied && !tied);
  if (decodes && !tied) output_ = nn::Linear(o.width, o.vocabulary, init, output_bias);
  if (!decodes && o.outputs > 0) output_ = nn::Linear(o.width, o.outputs, init, output_bias);
  if (tied && output_bias) output_.bias = init.constant({o.vocabulary}, 0);
}

void Transformer::check_position(int64_t tokens) const {
  const TransformerOptions& o = options_;
  if (tokens <= o.max_length || o.positions == Positions::none || o.positions == Positions::alibi) return;
  fail("a row of " + std::to_string(tokens) + " tokens came, expected at most " + std::to_string(o.max_length) +
       " (max_length)");
}

Var Transformer::add_positions(Pass& pass, const Var& x, const nn::Embedding& table, int64_t position) const {
  const TransformerOptions& o = options_;
  const int64_t length = x.shape(1);
  check_position(position + length);
  if (o.positions == Positions::sinusoid) {
    const bool kept = position + length <= sinusoids_.shape(0);
    const Tensor rows =
        kept ? sinusoids_.slice(position, length)
             : nn::sinusoids(length, o.width,
                             {.layout = o.sinusoid_layout, .first_position = o.first_position + position});
    return ops::add_row(pass, x, x.dtype() == rows.dtype() ? rows : rows.converted(x.dtype()));
  }
  if (o.positions != Positions::learned) return x;
  return ops::add_row(pass, x, ops::rows(pass, pass.use(table.weight), o.first_position + position, length));
}

Var Transformer::embed_source(Pass& pass, const Tokens& source) const {
  const bool shared =
      options_.kind == TransformerKind::encoder;  // where there is one of something, it is the encoder's
  const nn::Embedding& table = source_embedding_.weight.value ? source_embedding_ : embedding_;
  const Var embedded = pass.embeddings(nn::TextSide::source, table(pass, source.ids));
  Var x = add_positions(pass, embedded, shared ? positions_ : source_positions_, 0);
  if (options_.token_types > 0) {
    const Tensor types = source.types ? source.types : Tensor::zeros(source.ids.shape(), DType::i32);
    x = ops::add(pass, x, token_types_(pass, types));
  }
  if (options_.embedding_norm) x = (shared ? embedding_norm_ : source_embedding_norm_)(pass, x);
  return ops::dropout(pass, x, pass.next_dropout(options_.dropout));
}

Var Transformer::embed_target(Pass& pass, const Tensor& ids, int64_t position) const {
  const Var embedded = pass.embeddings(nn::TextSide::target, embedding_(pass, ids));
  Var x = add_positions(pass, embedded, positions_, position);
  if (options_.embedding_norm) x = embedding_norm_(pass, x);
  return ops::dropout(pass, x, pass.next_dropout(options_.dropout));
}

// One token of each row, at a position of its own. Inference.
Var Transformer::embed_each(Pass& pass, const Tensor& ids, std::span<const int64_t> positions) const {
  const TransformerOptions& o = options_;
  const int64_t longest = *std::max_element(positions.begin(), positions.end());
  if (ids.shape(1) != 1) {
    fail(std::to_string(ids.shape(1)) + " tokens a row came, expected 1 where rows have different lengths");
  }
  Var x = pass.embeddings(nn::TextSide::target, embedding_(pass, ids));
  const bool learned = o.positions == Positions::learned;
  check_position(longest + 1);
  if (learned || o.positions == Positions::sinusoid) {
    std::vector<int32_t> at;
    for (const int64_t position : positions) {
      at.push_back(static_cast<int32_t>(learned ? o.first_position + position : position));
    }
    const Tensor rows = Tensor::of(ids.shape(), std::span<const int32_t>(at));
    const Tensor table = learned ? positions_.weight.value : sinusoids_;
    const Var place = ops::embedding(pass, table.dtype() == x.dtype() ? table : table.converted(x.dtype()), rows);
    x = ops::add(pass, x, place);
  }
  return options_.embedding_norm ? embedding_norm_(pass, x) : x;
}

Var Transformer::last_norm(Pass& pass, const Var& x, const nn::Norm& norm) const {
  return options_.norm == NormPlace::before ? norm(pass, x) : x;
}

Var Transformer::encode(Pass& pass, const Tokens& source) const {
  if (options_.kind == TransformerKind::decoder) fail("encode was called, expected a model with an encoder");
  check_ids("transformer", "source", source.ids);
  check_types(source, options_.token_types);
  Var x = embed_source(pass, source);
  const nn::AttentionCall call{AttentionRole::self, lengths_mask(source)};
  report_hidden(pass, "embedding", nn::TextSide::source, 0, x);
  for (size_t i = 0; i < encoder_.size(); ++i) {
    x = encoder_[i](pass, x, call);
    report_hidden(pass, "encoder." + std::to_string(i), nn::TextSide::source, 0, x);
  }
  return last_norm(pass, x, encoder_norm_);
}

Var Transformer::tag(Pass& pass, const Tokens& source) const {
  if (options_.outputs == 0) fail("tag was called, expected an encoder with outputs");
  return output_(pass, encode(pass, source));
}

Var Transformer::decoder_states(Pass& pass, const Tokens& target, const Var& memory, const Tokens& source) const {
  if (options_.kind == TransformerKind::encoder) fail("decode was called, expected a model with a decoder");
  check_ids("transformer", "target", target.ids);
  check_types(target, 0);
  const bool cross = options_.kind == TransformerKind::encoder_decoder;
  if (cross != static_cast<bool>(memory)) {
    fail(cross ? "memory is missing, expected what encode gave" : "memory came, expected none for a decoder alone");
  }
  Var x = embed_target(pass, target.ids, 0);
  nn::AttentionCall call{AttentionRole::masked, lengths_mask(target)};
  call.mask.causal = kernels::Causal::top_left();
  const LayerSource looked_at{memory, {AttentionRole::cross, lengths_mask(source)}};
  report_hidden(pass, "embedding", nn::TextSide::target, 0, x);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    x = decoder_[i](pass, x, call, looked_at);
    report_hidden(pass, "decoder." + std::to_string(i), nn::TextSide::target, 0, x);
  }
  return last_norm(pass, x, decoder_norm_);
}

Var Transformer::decode(Pass& pass, const Tokens& target, const Var& memory, const Tokens& source) const {
  return logits(pass, decoder_states(pass, target, memory, source));
}

Var Transformer::logits(Pass& pass, const Var& states) const {
  if (pass.output_subset) return (*pass.output_subset)(pass, states);
  return options_.tied ? embedding_.output(pass, states, output_.bias) : output_(pass, states);
}

nn::Linear Transformer::output_subset(Pass& pass, std::span<const int32_t> tokens) const {
  if (options_.kind == TransformerKind::encoder) fail("output_subset was called, expected a model with a decoder");
  return options_.tied ? embedding_.output_subset(tokens, output_.bias, pass.parallel)
                       : output_.subset(tokens, pass.parallel);
}

Var Transformer::readout(Pass& pass, const Var& states) const {
  if (options_.kind != TransformerKind::encoder) return logits(pass, last_norm(pass, states, decoder_norm_));
  if (options_.outputs == 0) fail("readout was called, expected an encoder with outputs");
  return output_(pass, last_norm(pass, states, encoder_norm_));
}

nn::State Transformer::begin(Pass& pass, const Tokens& source) const {
  nn::State state;
  state.self.assign(decoder_.size(), nn::KvCache(pass.cache_dtype));
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
  if (options_.kind == TransformerKind::encoder) fail("step was called, expected a model with a decoder");
  check_ids("transformer", "ids", ids);
  const size_t with_cross = options_.kind == TransformerKind::encoder_decoder ? decoder_.size() : 0;
  if (state.self.size() != decoder_.size() || state.cross.size() != with_cross) {
    fail("the state has caches for " + std::to_string(state.self.size()) + " + " + std::to_string(state.cross.size()) +
         " attention layers, expected " + std::to_string(decoder_.size()) + " + " + std::to_string(with_cross) +
         ", as begin gives them");
  }
  Var x = state.has_equal_lengths() ? embed_target(pass, ids, state.length()) : embed_each(pass, ids, state.lengths);
  report_hidden(pass, "embedding", nn::TextSide::target, state.length(), x);
  CachedLayerSource source{nullptr, {AttentionRole::cross, kernels::Lengths{state.source_lengths}, state.length()}};
  for (size_t i = 0; i < decoder_.size(); ++i) {
    if (with_cross) source.cache = &state.cross[i];
    x = decoder_[i].step(pass, x, state.self[i], source);
    report_hidden(pass, "decoder." + std::to_string(i), nn::TextSide::target, state.length(), x);
  }
  state.advance(ids.shape(0), ids.shape(1));
  return logits(pass, last_norm(pass, x, decoder_norm_));
}

}  // namespace heed::models
