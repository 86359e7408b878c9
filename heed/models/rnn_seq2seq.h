// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recurrent decoder and its encoder, from one fixed vector (Sutskever et al. 2014) to attention in its first forms
// (Bahdanau et al. 2015, Luong et al. 2015).
//
//   encoder: recurrent       reads the source in one direction or both
//            self_attentive  blocks whose states attend to each other (attentive_blocks.h); the decoder gets
//                            tanh(W [h ; c] + b) of the last one, as wide as its own states
//
// The decoder begins from the encoder's last states, from the mean of all, or from attention with a learned query to
// all. The last ones
// of a recurrent encoder are those that each of its layers ends with, in each direction, or (top) that its last layer
// ends with, for all layers of the decoder; a self-attentive one has one for all, that of a row's last token. They go
// into the decoder as they are, or through a bridge: W h + b, or tanh(W h + b), of each layer's own. A bridge is needed
// where the encoder's states are not as wide as the decoder's.
//
//   query: none      no attention: the decoder knows the source by its first state alone
//          previous  the state before a token is the query, and its context is fed to the cell beside the token
//          current   the state after a token is the query; a whole sequence at once, unless input_feeding also feeds
//                    the cell the context of the state before, or the attentional vector tanh(W [h ; c] + b) of both,
//                    as Luong et al. do
//
// At the first token, what is fed is computed from the first state; Luong et al. feed zeros there.
//
//   RnnSeq2Seq model({.vocabulary = V, .width = 256, .query = Query::previous}, rng);
//   const Var logits = model.decode(pass, target, model.encode(pass, source), source);
#include <span>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/models/attentive_blocks.h"
#include "heed/models/tokens.h"
#include "heed/nn/recurrent.h"
#include "heed/nn/single_head_attention.h"
#include "heed/nn/state.h"

namespace heed::models {

enum class Encoder : uint8_t { recurrent, self_attentive };
enum class Query : uint8_t { none, previous, current };
enum class FirstState : uint8_t { last, mean, learned, top };
enum class Bridge : uint8_t { none, linear, tanh };
enum class Feed : uint8_t { context, attentional };
enum class Readout : uint8_t { state, context, both };

constexpr auto enum_names(Encoder) {
  return std::to_array<EnumName<Encoder>>(
      {{"recurrent", Encoder::recurrent}, {"self_attentive", Encoder::self_attentive}});
}
constexpr auto enum_names(Query) {
  return std::to_array<EnumName<Query>>(
      {{"none", Query::none}, {"previous", Query::previous}, {"current", Query::current}});
}
constexpr auto enum_names(FirstState) {
  return std::to_array<EnumName<FirstState>>({{"last", FirstState::last},
                                              {"mean", FirstState::mean},
                                              {"learned", FirstState::learned},
                                              {"top", FirstState::top}});
}
constexpr auto enum_names(Bridge) {
  return std::to_array<EnumName<Bridge>>({{"none", Bridge::none}, {"linear", Bridge::linear}, {"tanh", Bridge::tanh}});
}
constexpr auto enum_names(Feed) {
  return std::to_array<EnumName<Feed>>({{"context", Feed::context}, {"attentional", Feed::attentional}});
}
constexpr auto enum_names(Readout) {
  return std::to_array<EnumName<Readout>>(
      {{"state", Readout::state}, {"context", Readout::context}, {"both", Readout::both}});
}

struct RnnSeq2SeqOptions {
  int64_t vocabulary{0};         // of the target, and of the source where it has none of its own
  int64_t source_vocabulary{0};  // 0: one vocabulary, and one table of embeddings, for both
  Encoder encoder{Encoder::recurrent};
  AttentiveBlocksOptions self_attentive{};  // of such an encoder
  nn::Cell cell{nn::Cell::gru};             // of the decoder and of a recurrent encoder
  int64_t width{256};                       // of embeddings, of the encoder's states, and of the decoder's
  int64_t layers{1};  // of the decoder, whose last layer has the attention, and of a recurrent encoder
  // Widths and layers of the parts, where they differ; 0: width and layers.
  int64_t embedding_width{0}, source_embedding_width{0};
  int64_t encoder_width{0}, encoder_layers{0};
  int64_t decoder_width{0}, decoder_layers{0};
  double embedding_scale{0};  // 0: the root of an embedding's width
  bool bidirectional{true};   // recurrent layers of the encoder: each direction makes one half of their states
  FirstState first_state{FirstState::last};
  Bridge bridge{Bridge::none};  // between the encoder's states and the decoder's first; learned has its own
  Query query{Query::previous};
  nn::Score score{nn::Score::additive};
  bool input_feeding{false};  // of query: current; previous always feeds its context
  Feed feed{Feed::context};   // of input_feeding; attentional: the readout's vector, with readout both
  Readout readout{Readout::both};
  bool tied{false};  // the output projection is the target's table of embeddings
  float dropout{0.1f};
  int64_t max_length{1024};  // of a source or target

  static void describe(RnnSeq2SeqOptions& o, auto&& field) {
    field("vocabulary", o.vocabulary, "tokens of the target", Range::within(0, kMaxTokens));
    field("source_vocabulary", o.source_vocabulary, "tokens of the source; 0: shared with the target",
          Range::within(0, kMaxTokens));
    field("encoder", o.encoder, "recurrent, or blocks whose states attend to each other");
    if (o.encoder == Encoder::self_attentive) {
      field("self_attentive", o.self_attentive, "options of an encoder whose states attend to each other");
    }
    field("cell", o.cell, "rnn, gru or lstm: of the decoder and of a recurrent encoder");
    field("width", o.width, "of embeddings and states", Range::within(1, kMaxWidth));
    field("layers", o.layers, "of the decoder and of a recurrent encoder", Range::within(1, kMaxLayers));
    field("embedding_width", o.embedding_width, "of the target's embeddings; 0: width", Range::within(0, kMaxWidth));
    field("source_embedding_width", o.source_embedding_width, "of the source's embeddings; 0: width",
          Range::within(0, kMaxWidth));
    field("encoder_width", o.encoder_width, "of the encoder's states; 0: width", Range::within(0, kMaxWidth));
    field("encoder_layers", o.encoder_layers, "of a recurrent encoder; 0: layers", Range::within(0, kMaxLayers));
    field("decoder_width", o.decoder_width, "of the decoder's states; 0: width", Range::within(0, kMaxWidth));
    field("decoder_layers", o.decoder_layers, "of the decoder; 0: layers", Range::within(0, kMaxLayers));
    field("embedding_scale", o.embedding_scale, "factor of embeddings; 0: the root of their width");
    field("bidirectional", o.bidirectional, "the encoder's recurrent layers read in both directions");
    field("first_state", o.first_state, "what the decoder begins from");
    field("bridge", o.bridge, "between the encoder's states and the decoder's first ones");
    field("query", o.query, "which state attends to the source; none: no attention");
    field("score", o.score, "of attention");
    field("input_feeding", o.input_feeding, "a state's context is fed to the next cell, for query current");
    if (o.input_feeding) field("feed", o.feed, "what is fed: the context, or the attentional vector");
    field("readout", o.readout, "what the next token is predicted from");
    field("tied", o.tied, "output projection and embeddings are one matrix");
    field("dropout", o.dropout, "of embeddings, between layers, and of what is read out", Range::from_below(0, 1));
    field("max_length", o.max_length, "of a source or target", Range::within(1, kMaxPositions));
  }
};

class HEED_API RnnSeq2Seq {
 public:
  RnnSeq2Seq(const RnnSeq2SeqOptions&, nn::Init init);  // throws Error where options do not fit each other

  const RnnSeq2SeqOptions& options() const { return options_; }

  // An encoded source: what the decoder attends to, and what it begins from.
  struct Encoded {
    Var states{}, keys{};     // [B,S,encoder width]; keys: of attention, empty without it
    nn::LayerStates begin{};  // of each layer of the decoder
  };
  Encoded encode(nn::Pass&, const Tokens& source) const;
  // Teacher forcing: logits [B,T,V], row t of the token after target tokens 0 to t.
  Var decode(nn::Pass&, const Tokens& target, const Encoded&, const Tokens& source) const;

  // Token by token: begin() once, then step() with the newest tokens [B,n] gives logits [B,n,V]. Inference.
  nn::State begin(nn::Pass&, const Tokens& source) const;
  Var step(nn::Pass&, const Tensor& ids, nn::State&) const;
  // The output layer for some tokens alone (models/stepwise.h).
  nn::Linear output_subset(nn::Pass&, std::span<const int32_t> tokens) const;

  void visit(auto&& each) {
    each("embedding", embedding_), each("source_embedding", source_embedding_);
    each("encoder", encoder_), each("encoder", attentive_), each("encoder_out", attentive_out_);
    each("first_query", first_query_);
    each("first_h", first_h_), each("first_c", first_c_);
    each("decoder", decoder_), each("decoder_top", top_), each("cross", cross_);
    each("readout", readout_), each("output", output_);
  }

 private:
  // The options with no zeros left in widths and layers.
  struct Sizes {
    explicit Sizes(const RnnSeq2SeqOptions&);
    int64_t embedding, source_embedding;
    int64_t encoder, encoder_layers;
    int64_t decoder, decoder_layers;
  };
  void check_sizes() const;
  void make_first_states(nn::Init init);
  bool feeds() const { return options_.query == Query::previous || options_.input_feeding; }
  double embedding_factor(int64_t width) const;
  // The encoder's states, and the last ones, where the decoder begins from them.
  nn::RecurrentOutput read(nn::Pass&, const Var& x, const Tokens& source) const;
  nn::LayerStates first_states(nn::Pass&, const nn::RecurrentOutput&, const Tokens& source) const;
  // Logits of what follows; `states` become those after the last token.
  Var run(nn::Pass&, const Tensor& ids, const Encoded&, const nn::AttentionCall&, nn::LayerStates& states) const;
  void check_length(int64_t tokens) const;

  RnnSeq2SeqOptions options_;
  Sizes sizes_;
  nn::Embedding embedding_, source_embedding_;
  nn::Recurrent encoder_;
  AttentiveBlocks attentive_;  // in its place
  nn::Linear attentive_out_;   // projects [h ; c] to the width of the encoder's states
  nn::Embedding first_query_;  // [1,width], of a learned first state
  nn::Attention first_look_;
  std::vector<nn::Linear> first_h_, first_c_;  // of a learned first state or a bridge: one a layer of the decoder
  nn::Recurrent decoder_;                      // the layers below the last
  nn::RecurrentDirection top_;
  nn::SingleHeadAttention cross_;
  nn::Linear readout_, output_;
};

}  // namespace heed::models
