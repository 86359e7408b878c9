#pragma once
// Blocks of a base layer whose states attend to each other: each state h_i looks at all of its row,
//
//   c_i = sum_j a_ij h_j,   a_i = softmax_j(f(h_i, h_j))
//
// and [h_i ; c_i] goes on to the next block. What a tagger, a classifier and an encoder have in common.
// Not here: embeddings, and what is made of the last block's states (self_attentive.h, rnn_seq2seq.h).
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/models/tokens.h"
#include "heed/nn/alignment.h"
#include "heed/nn/recurrent.h"

namespace heed::models {

// none: the block's input itself. linear: a fully connected layer. conv1d: each state from its neighbours.
enum class BaseLayer : uint8_t { none, linear, conv1d, rnn, gru, lstm };

constexpr auto enum_names(BaseLayer) {
  return std::to_array<EnumName<BaseLayer>>({{"none", BaseLayer::none},
                                             {"linear", BaseLayer::linear},
                                             {"conv1d", BaseLayer::conv1d},
                                             {"rnn", BaseLayer::rnn},
                                             {"gru", BaseLayer::gru},
                                             {"lstm", BaseLayer::lstm}});
}

struct AttentiveBlocksOptions {
  BaseLayer base{BaseLayer::lstm};
  int64_t blocks{1};     // one over the other
  int64_t taps{3};       // of conv1d: an odd number of tokens that a state is made from
  bool attention{true};  // without it, h alone goes on: what attention adds can be seen
  nn::Score score{nn::Score::scaled};

  static void describe(AttentiveBlocksOptions& o, auto&& field) {
    field("base", o.base, "the layer whose states attend to each other");
    field("blocks", o.blocks, "one over the other", Range::at_least(1));
    field("taps", o.taps, "tokens that a state of conv1d is made from", Range::at_least(1));
    field("attention", o.attention, "states attend to each other");
    field("score", o.score, "of attention among states");
  }
};

// What the model around them has in one place for all its parts.
struct AttentiveBlocksSetting {
  std::string path;          // told to observers, with the block's number after it: "encoder" gives "encoder.0.self"
  std::string parameters{};  // their path among the model's: "encoder.blocks"; told of recurrent layers
  int64_t width{128};        // of a base layer's states
  int64_t in{0};             // of the first block's input; 0: width
  bool bidirectional{true};  // of a recurrent base layer: each direction makes one half
  float dropout{0};          // of each block's result
};

struct HEED_API AttentiveBlock {
  nn::Linear linear;
  nn::Conv1d conv1d;
  nn::Recurrent recurrent;
  nn::Alignment self;

  AttentiveBlock(const AttentiveBlocksOptions&, const AttentiveBlocksSetting&, int64_t in, nn::Init init);
  Var operator()(nn::Pass&, const Var& x, const Tokens& source) const;

  void visit(auto&& each) {
    each("linear", linear), each("conv1d", conv1d), each("recurrent", recurrent), each("self", self);
  }
};

struct HEED_API AttentiveBlocks {
  std::vector<AttentiveBlock> blocks;
  int64_t width{0};  // of the result: twice that of a state, with attention; without a base layer it doubles each time
  float dropout{0};

  AttentiveBlocks() = default;
  AttentiveBlocks(const AttentiveBlocksOptions&, const AttentiveBlocksSetting&, nn::Init init);

  // x [B,S,in] -> [B,S,width]. What stands beyond a row's length is never looked at, and means nothing.
  Var operator()(nn::Pass&, const Var& x, const Tokens& source) const;

  void visit(auto&& each) { each("blocks", blocks); }
};

}  // namespace heed::models
