#pragma once
// Layers whose states attend to each other: embeddings, then blocks of a base layer, of which each state h_i looks at
// all the others,
//
//   c_i = sum_j a_ij h_j,   a_i = softmax_j(f(h_i, h_j))
//
// and [h_i ; c_i] goes on to the next block, and in the end to a head: a tag for each token, or a class for the whole.
//
//   SelfAttentive tagger({.vocabulary = V, .outputs = tags, .base = BaseLayer::lstm}, rng);
//   const Var logits = tagger.logits(pass, source);
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/models/tokens.h"
#include "heed/nn/alignment.h"
#include "heed/nn/recurrent.h"

namespace heed::models {

// none: the block's input itself. linear: a fully connected layer. conv1d: each state from its neighbours.
enum class BaseLayer : uint8_t { none, linear, conv1d, rnn, gru, lstm };
enum class SelfAttentiveHead : uint8_t { tags, classes };

constexpr auto enum_names(BaseLayer) {
  return std::to_array<EnumName<BaseLayer>>({{"none", BaseLayer::none},
                                             {"linear", BaseLayer::linear},
                                             {"conv1d", BaseLayer::conv1d},
                                             {"rnn", BaseLayer::rnn},
                                             {"gru", BaseLayer::gru},
                                             {"lstm", BaseLayer::lstm}});
}
constexpr auto enum_names(SelfAttentiveHead) {
  return std::to_array<EnumName<SelfAttentiveHead>>(
      {{"tags", SelfAttentiveHead::tags}, {"classes", SelfAttentiveHead::classes}});
}

struct SelfAttentiveOptions {
  int64_t vocabulary{0};
  int64_t outputs{0};  // tags, or classes
  SelfAttentiveHead head{SelfAttentiveHead::tags};
  BaseLayer base{BaseLayer::lstm};
  int64_t width{128};        // of embeddings and of a base layer's states
  int64_t blocks{1};         // one over the other
  bool bidirectional{true};  // of a recurrent base layer: each direction makes one half
  int64_t taps{3};           // of conv1d: an odd number of tokens that a state is made from
  bool attention{true};      // without it, h alone goes on: what attention adds can be seen
  nn::Score score{nn::Score::scaled};
  float dropout{0.1f};
  int64_t max_length{1024};  // of a row

  static void describe(SelfAttentiveOptions& o, auto&& field) {
    field("vocabulary", o.vocabulary, "tokens of the source", Range::at_least(0));
    field("outputs", o.outputs, "tags, or classes", Range::at_least(0));
    field("head", o.head, "tags: one for each token; classes: one for the whole");
    field("base", o.base, "the layer whose states attend to each other");
    field("width", o.width, "of embeddings and states", Range::at_least(1));
    field("blocks", o.blocks, "one over the other", Range::at_least(1));
    field("bidirectional", o.bidirectional, "a recurrent base layer reads in both directions");
    field("taps", o.taps, "tokens that a state of conv1d is made from", Range::at_least(1));
    field("attention", o.attention, "states attend to each other");
    field("score", o.score, "of attention");
    field("dropout", o.dropout, "of embeddings and of each block's result", Range::from_below(0, 1));
    field("max_length", o.max_length, "of a row", Range::at_least(1));
  }
};

struct SelfAttentiveBlock {
  nn::Linear linear;
  nn::Conv1d conv1d;
  nn::Recurrent recurrent;
  nn::Alignment self;

  SelfAttentiveBlock(const SelfAttentiveOptions&, int64_t in, const std::string& path, Rng& rng);
  Var operator()(nn::Pass&, const Var& x, const Tokens& source) const;

  void visit(auto&& each) {
    each("linear", linear), each("conv1d", conv1d), each("recurrent", recurrent), each("self", self);
  }
};

class SelfAttentive {
 public:
  SelfAttentive(const SelfAttentiveOptions&, Rng& rng);  // throws Error where options do not fit each other

  const SelfAttentiveOptions& options() const { return options_; }
  // [B,S,tags], or [B,1,classes].
  Var logits(nn::Pass&, const Tokens& source) const;

  void visit(auto&& each) { each("embedding", embedding_), each("blocks", blocks_), each("output", output_); }

 private:
  SelfAttentiveOptions options_;
  nn::Embedding embedding_;
  std::vector<SelfAttentiveBlock> blocks_;
  nn::Linear output_;
};

}  // namespace heed::models
