// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of a base layer with self-attention over its states: each state h_i attends to all of its row,
//
//   c_i = sum_j a_ij h_j,   a_i = softmax_j(f(h_i, h_j))
//
// and [h_i ; c_i] is the input of the next block. Taggers, classifiers and encoders are built of them.
// Not here: embeddings, and the heads on the last block's states (self_attentive.h, rnn_seq2seq.h).
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/models/size_limits.h"
#include "heed/models/tokens.h"
#include "heed/nn/recurrent.h"
#include "heed/nn/single_head_attention.h"

namespace heed::models {

// The layer whose states attend to each other. none: the block's input itself. linear: a fully connected layer.
enum class BaseLayer : uint8_t { none, linear, conv1d, rnn, gru, lstm };

constexpr auto enum_names(BaseLayer) {
  return std::to_array<EnumName<BaseLayer>>({{"none", BaseLayer::none},
                                             {"linear", BaseLayer::linear},
                                             {"conv1d", BaseLayer::conv1d},
                                             {"rnn", BaseLayer::rnn},
                                             {"gru", BaseLayer::gru},
                                             {"lstm", BaseLayer::lstm}});
}

// The base layer, the number of blocks, and their attention.
struct AttentiveBlocksOptions {
  BaseLayer base{BaseLayer::lstm};
  int64_t blocks{1};     // stacked
  int64_t taps{3};       // of conv1d: its kernel size, an odd number of tokens
  bool attention{true};  // without it, h alone is passed on: the baseline to compare with
  nn::Score score{nn::Score::scaled};

  static void describe(AttentiveBlocksOptions& o, auto&& field) {
    field("base", o.base, "the layer whose states attend to each other");
    field("blocks", o.blocks, "stacked blocks", Range::within(1, kMaxLayers));
    field("taps", o.taps, "tokens that a state of conv1d is made from", Range::within(1, kMaxTaps));
    field("attention", o.attention, "states attend to each other");
    field("score", o.score, "of attention among states");
  }
};

// Paths, widths and dropout, which the model around the blocks decides.
struct AttentiveBlocksSetting {
  std::string path;          // of attention, for observers: "encoder" gives "encoder.0.self" for block 0
  std::string parameters{};  // of the blocks' parameters: "encoder.blocks"; for observers of recurrent layers
  int64_t width{128};        // of a base layer's states
  int64_t in{0};             // of the first block's input; 0: width
  bool bidirectional{true};  // of a recurrent base layer: each direction makes one half
  float dropout{0};          // of each block's output
};

// A base layer, of which one is not empty, and the attention over its states.
struct HEED_API AttentiveBlock {
  nn::Linear linear;
  nn::Conv1d conv1d;
  nn::Recurrent recurrent;
  nn::SingleHeadAttention self;

  AttentiveBlock(const AttentiveBlocksOptions&, const AttentiveBlocksSetting&, int64_t in, nn::Init init);
  Var operator()(nn::Pass&, const Var& x, const Tokens& source) const;

  void visit(auto&& each) {
    each("linear", linear), each("conv1d", conv1d), each("recurrent", recurrent), each("self", self);
  }
};

// A stack of blocks.
struct HEED_API AttentiveBlocks {
  std::vector<AttentiveBlock> blocks;
  int64_t width{0};  // of the output: twice that of a state, with attention; without a base layer it doubles each time
  float dropout{0};

  AttentiveBlocks() = default;
  AttentiveBlocks(const AttentiveBlocksOptions&, const AttentiveBlocksSetting&, nn::Init init);

  // x [B,S,in] -> [B,S,width]. Padding is masked; the output at padding is not defined.
  Var operator()(nn::Pass&, const Var& x, const Tokens& source) const;

  void visit(auto&& each) { each("blocks", blocks); }
};

}  // namespace heed::models
