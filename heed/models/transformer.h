#pragma once
// The Transformer: encoder and decoder, encoder alone, or decoder alone; normalisation before or after each part;
// positions by sines, a learned table, rotation or ALiBi; embeddings tied or not.
//
//   Transformer model(TransformerOptions::preset("small", vocabulary), rng);
//   ParameterStore parameters(model);
//   const Var memory = model.encode(pass, source);
//   const Var logits = model.decode(pass, target, memory, source);
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/models/tokens.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/nn/state.h"

namespace heed::models {

enum class TransformerKind : uint8_t { encoder_decoder, encoder, decoder };
enum class NormPlace : uint8_t { before, after };
enum class Positions : uint8_t { none, sinusoid, learned, rotary, alibi };

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

struct HEED_API TransformerOptions {
  TransformerKind kind{TransformerKind::encoder_decoder};
  int64_t vocabulary{0};         // of the target, and of the source where it has none of its own
  int64_t source_vocabulary{0};  // 0: one vocabulary, and one table of embeddings, for both
  int64_t width{256}, heads{4}, kv_heads{0}, inner{1024};
  int64_t encoder_layers{3}, decoder_layers{3};
  int64_t max_length{1024};  // tokens that positions are known for
  float dropout{0.1f}, attention_dropout{0};
  NormPlace norm{NormPlace::before};
  bool rms{false};
  Positions positions{Positions::sinusoid};
  bool tied{true};     // the output projection is the target's table of embeddings
  bool gelu{false};    // instead of ReLU
  int64_t outputs{0};  // of an encoder alone: classes of each token; 0: the encoder's states

  // tiny, small, base: base is that of Vaswani et al. 2017 (512, 8 heads of 64, 6 + 6 layers, 2048). Throws Error for
  // any other name.
  static TransformerOptions preset(const std::string& name, int64_t vocabulary);

  static void describe(TransformerOptions& o, auto&& field) {
    field("kind", o.kind, "which parts there are");
    field("vocabulary", o.vocabulary, "tokens of the target", Range::at_least(0));
    field("source_vocabulary", o.source_vocabulary, "tokens of the source; 0: shared with the target",
          Range::at_least(0));
    field("width", o.width, "of the states", Range::at_least(1));
    field("heads", o.heads, "of attention", Range::at_least(1));
    field("kv_heads", o.kv_heads, "heads of keys and values; 0: as many as heads", Range::at_least(0));
    field("inner", o.inner, "width inside the feed-forward part", Range::at_least(1));
    field("encoder_layers", o.encoder_layers, "layers of the encoder", Range::at_least(0));
    field("decoder_layers", o.decoder_layers, "layers of the decoder", Range::at_least(0));
    field("max_length", o.max_length, "tokens that positions are known for", Range::at_least(1));
    field("dropout", o.dropout, "of the parts' results", Range::from_below(0, 1));
    field("attention_dropout", o.attention_dropout, "of attention weights", Range::from_below(0, 1));
    field("norm", o.norm, "normalisation before or after each part");
    field("rms", o.rms, "RMS norm instead of layer norm");
    field("positions", o.positions, "how tokens know where they stand");
    field("tied", o.tied, "output projection and embeddings are one matrix");
    field("gelu", o.gelu, "GELU instead of ReLU");
    field("outputs", o.outputs, "classes of each token, for an encoder alone; 0: its states", Range::at_least(0));
  }
};

// What a decoder's layer looks at beside itself: the encoder's states, or keys and values that were made of them.
struct LayerSource {
  Var memory{};  // [B,S,width]
  nn::AttentionCall call{nn::AttentionRole::cross};
};
struct CachedLayerSource {
  const nn::KvCache* cache{nullptr};
  nn::AttentionCall call{nn::AttentionRole::cross};
};

// Self-attention, attention to a source in a decoder, and the feed-forward part. A part's result is added to what went
// in: x + dropout(part(norm(x))), or norm(x + dropout(part(x))).
struct HEED_API TransformerLayer {
  nn::Attention self, cross;  // cross: empty in an encoder
  nn::FeedForward feed_forward;
  nn::Norm norm_self, norm_cross, norm_feed_forward;
  NormPlace norm_place;
  float dropout;

  TransformerLayer(const TransformerOptions&, const std::string& path, bool with_cross, Rng& rng);
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
  Transformer(const TransformerOptions&, Rng& rng);  // throws Error where options do not fit each other

  const TransformerOptions& options() const { return options_; }

  // States [B,S,width] of the source; of an encoder alone with outputs, [B,S,outputs].
  Var encode(nn::Pass&, const Tokens& source) const;
  // Logits [B,T,V]: row t is what comes after target tokens 0 to t. `memory` is what encode gave, empty for a decoder
  // alone.
  Var decode(nn::Pass&, const Tokens& target, const Var& memory, const Tokens& source) const;

  // Token by token: begin() once, then step() with the newest tokens [B,n] gives logits [B,n,V]. Inference.
  nn::State begin(nn::Pass&, const Tokens& source) const;
  Var step(nn::Pass&, const Tensor& ids, nn::State&) const;

  void visit(auto&& each) {
    each("embedding", embedding_), each("source_embedding", source_embedding_);
    each("positions", positions_), each("source_positions", source_positions_);
    each("encoder", encoder_), each("encoder_norm", encoder_norm_);
    each("decoder", decoder_), each("decoder_norm", decoder_norm_);
    each("output", output_);
  }

 private:
  Var embed(nn::Pass&, const nn::Embedding&, const nn::Embedding& positions, const Tensor& ids, int64_t position) const;
  Var logits(nn::Pass&, const Var& x) const;

  TransformerOptions options_;
  nn::Embedding embedding_, source_embedding_, positions_, source_positions_;
  Tensor sinusoids_;  // [max_length, width]
  std::vector<TransformerLayer> encoder_, decoder_;
  nn::Norm encoder_norm_, decoder_norm_;
  nn::Linear output_;
};

}  // namespace heed::models
