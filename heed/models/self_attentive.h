// SPDX-License-Identifier: Apache-2.0
#pragma once
// Taggers and classifiers with self-attention over hidden states: embeddings, then blocks that pass [h ; c] on
// (attentive_blocks.h), and a head: a tag for each token, or a class for the whole. As an encoder, the same blocks are
// part of rnn_seq2seq.h.
//
//   SelfAttentive tagger({.vocabulary = V, .outputs = tags, .layers = {.base = BaseLayer::lstm}}, rng);
//   const Var logits = tagger.logits(pass, source);
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/models/attentive_blocks.h"
#include "heed/models/tokens.h"

namespace heed::models {

// What the output layer predicts.
enum class SelfAttentiveHead : uint8_t { tags, classes };

constexpr auto enum_names(SelfAttentiveHead) {
  return std::to_array<EnumName<SelfAttentiveHead>>(
      {{"tags", SelfAttentiveHead::tags}, {"classes", SelfAttentiveHead::classes}});
}

struct SelfAttentiveOptions {
  int64_t vocabulary{0};
  int64_t outputs{0};  // tags, or classes
  SelfAttentiveHead head{SelfAttentiveHead::tags};
  AttentiveBlocksOptions layers{};
  int64_t width{128};        // of embeddings and of a base layer's states
  bool bidirectional{true};  // of a recurrent base layer: each direction makes one half
  float dropout{0.1f};
  int64_t max_length{1024};  // of a row

  static void describe(SelfAttentiveOptions& o, auto&& field) {
    field("vocabulary", o.vocabulary, "tokens of the source", Range::within(0, kMaxTokens));
    field("outputs", o.outputs, "tags, or classes", Range::within(0, kMaxTokens));
    field("head", o.head, "tags: one for each token; classes: one for the whole");
    AttentiveBlocksOptions::describe(o.layers, field);
    field("width", o.width, "of embeddings and states", Range::within(1, kMaxWidth));
    field("bidirectional", o.bidirectional, "a recurrent base layer reads in both directions");
    field("dropout", o.dropout, "of embeddings and of each block's result", Range::from_below(0, 1));
    field("max_length", o.max_length, "of a row", Range::within(1, kMaxPositions));
  }
};

class HEED_API SelfAttentive {
 public:
  SelfAttentive(const SelfAttentiveOptions&, nn::Init init);  // throws Error where options do not fit each other

  const SelfAttentiveOptions& options() const { return options_; }
  // [B,S,tags], or [B,1,classes].
  Var logits(nn::Pass&, const Tokens& source) const;
  // The last block's output [B,S,width], which the logits are computed from.
  Var states(nn::Pass&, const Tokens& source) const;

  void visit(auto&& each) { each("embedding", embedding_), each("blocks", blocks_.blocks), each("output", output_); }

 private:
  SelfAttentiveOptions options_;
  nn::Embedding embedding_;
  AttentiveBlocks blocks_;
  nn::Linear output_;
};

}  // namespace heed::models
