// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Transformer: encoder and decoder, encoder alone, or decoder alone; normalisation before or after each sublayer;
// sinusoidal, learned, rotary or ALiBi positions; tied embeddings or not; feed-forward layers gated or not. The options
// reach the well-known ones: BERT, GPT-2, Marian, Llama (docs/weights.md).
//
//   Transformer model({.vocabulary = V, .width = 256}, rng);
//   ParameterStore parameters(model);
//   const Var memory = model.encode(pass, source);
//   const Var logits = model.decode(pass, target, memory, source);
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/models/size_limits.h"
#include "heed/models/tokens.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/nn/state.h"

namespace heed::models {

enum class TransformerKind : uint8_t { encoder_decoder, encoder, decoder };
enum class NormPlace : uint8_t { before, after };
enum class Positions : uint8_t { none, sinusoid, learned, rotary, alibi };
enum class OutputBias : uint8_t { if_untied, always, never };

constexpr auto enum_names(TransformerKind) {
  return std::to_array<EnumName<TransformerKind>>({{"encoder-decoder", TransformerKind::encoder_decoder},
                                                   {"encoder", TransformerKind::encoder},
                                                   {"decoder", TransformerKind::decoder}});
}
constexpr auto enum_names(NormPlace) {
  return std::to_array<EnumName<NormPlace>>({{"before", NormPlace::before}, {"after", NormPlace::after}});
}
constexpr auto enum_names(Positions) {
  return std::to_array<EnumName<Positions>>({{"none", Positions::none},
                                             {"sinusoid", Positions::sinusoid},
                                             {"learned", Positions::learned},
                                             {"rotary", Positions::rotary},
                                             {"alibi", Positions::alibi}});
}
constexpr auto enum_names(OutputBias) {
  return std::to_array<EnumName<OutputBias>>(
      {{"if-untied", OutputBias::if_untied}, {"always", OutputBias::always}, {"never", OutputBias::never}});
}

struct HEED_API TransformerOptions {
  TransformerKind kind{TransformerKind::encoder_decoder};
  int64_t vocabulary{0};         // of the target, and of the source where it has none of its own
  int64_t source_vocabulary{0};  // 0: one vocabulary, and one table of embeddings, for both
  int64_t width{256}, heads{4}, kv_heads{0}, inner{1024};
  int64_t head_width{0};  // of queries, keys and values; 0: width / heads
  int64_t encoder_layers{3}, decoder_layers{3};
  int64_t max_length{1024};  // tokens that positions are known for
  float dropout{0.1f}, attention_dropout{0};
  NormPlace norm{NormPlace::before};
  bool rms{false};
  double norm_eps{1e-5};
  double embedding_scale{0};   // 0: sqrt(width)
  bool embedding_norm{false};  // of tokens, positions and types together
  int64_t token_types{0};      // of an encoder's tokens, with an embedding each; 0: none
  Positions positions{Positions::sinusoid};
  nn::SinusoidLayout sinusoid_layout{nn::SinusoidLayout::interleaved};
  int64_t first_position{0};  // of the first token, by sines or in a learned table
  double rotary_base{10000};
  nn::Activation activation{nn::Activation::relu};  // of the feed-forward part
  bool gated{false};                                // the feed-forward part has a third product, as in SwiGLU
  bool bias{true};                                  // of projections and of the feed-forward part
  bool tied{true};                                  // the output projection is the target's table of embeddings
  OutputBias output_bias{OutputBias::if_untied};
  int64_t outputs{0};  // of an encoder alone: classes of each token; 0: it has no logits, but states

  static void describe(TransformerOptions& o, auto&& field) {
    field("kind", o.kind, "which parts there are");
    field("vocabulary", o.vocabulary, "tokens of the target", Range::within(0, kMaxTokens));
    field("source_vocabulary", o.source_vocabulary, "tokens of the source; 0: shared with the target",
          Range::within(0, kMaxTokens));
    field("width", o.width, "of the states", Range::within(1, kMaxWidth));
    field("heads", o.heads, "of attention", Range::within(1, kMaxHeads));
    field("kv_heads", o.kv_heads, "heads of keys and values; 0: as many as heads", Range::within(0, kMaxHeads));
    field("head_width", o.head_width, "of queries, keys and values; 0: width / heads", Range::within(0, kMaxWidth));
    field("inner", o.inner, "width inside the feed-forward part", Range::within(1, kMaxInner));
    field("encoder_layers", o.encoder_layers, "layers of the encoder", Range::within(0, kMaxLayers));
    field("decoder_layers", o.decoder_layers, "layers of the decoder", Range::within(0, kMaxLayers));
    field("max_length", o.max_length, "tokens that positions are known for", Range::within(1, kMaxPositions));
    field("dropout", o.dropout, "of the parts' results", Range::from_below(0, 1));
    field("attention_dropout", o.attention_dropout, "of attention weights", Range::from_below(0, 1));
    field("norm", o.norm, "normalisation before or after each part");
    field("rms", o.rms, "RMS norm instead of layer norm");
    field("norm_eps", o.norm_eps, "added to the variance in a norm", Range::above(0));
    field("embedding_scale", o.embedding_scale, "factor of token embeddings; 0: the root of the width");
    field("embedding_norm", o.embedding_norm, "a norm after the embeddings");
    field("token_types", o.token_types, "types of an encoder's tokens, with an embedding each",
          Range::within(0, kMaxTokens));
    field("positions", o.positions, "position encoding");
    field("sinusoid_layout", o.sinusoid_layout, "sines beside cosines, or in the first half");
    field("first_position", o.first_position, "of the first token, for sinusoid and learned",
          Range::within(0, kMaxPositions));
    field("rotary_base", o.rotary_base, "of the angles of rotary", Range::above(0));
    bool gelu = o.activation == nn::Activation::gelu;
    const bool before = gelu;
    field("gelu", gelu, "GELU instead of ReLU", Legacy{});
    if (gelu != before) o.activation = gelu ? nn::Activation::gelu : nn::Activation::relu;
    field("activation", o.activation, "of the feed-forward part");
    field("gated", o.gated, "a third product beside the activation, as in SwiGLU");
    field("bias", o.bias, "of projections and of the feed-forward part");
    field("tied", o.tied, "output projection and embeddings are one matrix");
    field("output_bias", o.output_bias, "of the output projection");
    field("outputs", o.outputs, "classes of each token, for an encoder alone; 0: it has states alone",
          Range::within(0, kMaxTokens));
  }

  double embedding_factor() const {
    return embedding_scale != 0 ? embedding_scale : std::sqrt(static_cast<double>(width));
  }
  nn::NormKind norm_kind() const { return rms ? nn::NormKind::rms : nn::NormKind::layer; }
};

// What a decoder layer's cross-attention attends to: the encoder's states, or a cache of their keys and values.
struct LayerSource {
  Var memory{};  // [B,S,width]
  nn::AttentionCall call{nn::AttentionRole::cross};
};
struct CachedLayerSource {
  const nn::KvCache* cache{nullptr};
  nn::AttentionCall call{nn::AttentionRole::cross};
};

// Self-attention, cross-attention in a decoder, and the feed-forward layer. Each is a residual sublayer:
// x + dropout(sublayer(norm(x))), or norm(x + dropout(sublayer(x))).
struct HEED_API TransformerLayer {
  nn::Attention self, cross;  // cross: empty in an encoder
  nn::FeedForward feed_forward;
  nn::Norm norm_self, norm_cross, norm_feed_forward;
  NormPlace norm_place;
  float dropout;

  TransformerLayer(const TransformerOptions&, const std::string& path, bool with_cross, nn::Init init);
  // x [B,T,width]; the source is empty in an encoder.
  Var operator()(nn::Pass&, const Var& x, const nn::AttentionCall& self_call, const LayerSource& = {}) const;
  // The newest tokens alone [B,n,width], after those in the cache. Inference.
  Var step(nn::Pass&, const Var& x, nn::KvCache&, const CachedLayerSource& = {}) const;

  void visit(auto&& each) {
    each("self", self), each("norm_self", norm_self);
    each("cross", cross), each("norm_cross", norm_cross);
    each("feed_forward", feed_forward), each("norm_feed_forward", norm_feed_forward);
  }

 private:
  template <class Part>
  Var add_part(nn::Pass&, const Var& x, const nn::Norm&, const Part&) const;
  template <class SelfPart, class CrossPart>
  Var run(nn::Pass&, const Var& x, const SelfPart&, const CrossPart&) const;
};

class HEED_API Transformer {
 public:
  Transformer(const TransformerOptions&, nn::Init init);  // throws Error where options do not fit each other

  const TransformerOptions& options() const { return options_; }

  // States [B,S,width] of the source.
  Var encode(nn::Pass&, const Tokens& source) const;
  // Logits [B,S,outputs] of each token of the source, for an encoder alone with outputs.
  Var tag(nn::Pass&, const Tokens& source) const;
  // Teacher forcing: logits [B,T,V], row t of the token after target tokens 0 to t. `memory` is what encode gave, empty
  // for a decoder alone.
  Var decode(nn::Pass&, const Tokens& target, const Var& memory, const Tokens& source) const;
  // The hidden states [B,T,width] that those logits are computed from.
  Var decoder_states(nn::Pass&, const Tokens& target, const Var& memory, const Tokens& source) const;

  // Logits of hidden states after any layer, as if it were the last (the logit lens): of the decoder, or of an encoder
  // alone with outputs.
  Var readout(nn::Pass&, const Var& states) const;

  // Token by token: begin() once, then step() with the newest tokens [B,n] gives logits [B,n,V]. Inference.
  nn::State begin(nn::Pass&, const Tokens& source) const;
  Var step(nn::Pass&, const Tensor& ids, nn::State&) const;
  // The output layer for some tokens alone (models/stepwise.h).
  nn::Linear output_subset(nn::Pass&, std::span<const int32_t> tokens) const;

  void visit(auto&& each) {
    each("embedding", embedding_), each("source_embedding", source_embedding_);
    each("positions", positions_), each("source_positions", source_positions_);
    each("token_types", token_types_);
    each("embedding_norm", embedding_norm_), each("source_embedding_norm", source_embedding_norm_);
    each("encoder", encoder_), each("encoder_norm", encoder_norm_);
    each("decoder", decoder_), each("decoder_norm", decoder_norm_);
    each("output", output_);
  }

 private:
  Var embed_source(nn::Pass&, const Tokens&) const;
  void check_position(int64_t tokens) const;
  Var embed_each(nn::Pass&, const Tensor& ids, std::span<const int64_t> positions) const;
  Var embed_target(nn::Pass&, const Tensor& ids, int64_t position) const;
  Var add_positions(nn::Pass&, const Var& x, const nn::Embedding& table, int64_t position) const;
  Var last_norm(nn::Pass&, const Var& x, const nn::Norm&) const;
  Var logits(nn::Pass&, const Var& states) const;

  TransformerOptions options_;
  nn::Embedding embedding_, source_embedding_, positions_, source_positions_, token_types_;
  nn::Norm embedding_norm_, source_embedding_norm_;
  Tensor sinusoids_;  // [n, width], of the first n positions: those that are kept
  std::vector<TransformerLayer> encoder_, decoder_;
  nn::Norm encoder_norm_, decoder_norm_;
  nn::Linear output_;  // tied: at most a bias
};

}  // namespace heed::models
