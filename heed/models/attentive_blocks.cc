// SPDX-License-Identifier: Apache-2.0
#include "heed/models/attentive_blocks.h"

#include <optional>

#include "heed/base/error.h"

namespace heed::models {
namespace {

using nn::Pass;

std::optional<nn::Cell> cell_of(BaseLayer base) {
  if (base == BaseLayer::rnn) return nn::Cell::rnn;
  if (base == BaseLayer::gru) return nn::Cell::gru;
  if (base == BaseLayer::lstm) return nn::Cell::lstm;
  return {};
}

}  // namespace

AttentiveBlock::AttentiveBlock(const AttentiveBlocksOptions& o, const AttentiveBlocksSetting& setting, int64_t in,
                               nn::Init init) {
  if (o.base == BaseLayer::linear) linear = nn::Linear(in, setting.width, init);
  if (o.base == BaseLayer::conv1d) conv1d = nn::Conv1d(in, setting.width, o.taps, init);
  if (const auto cell = cell_of(o.base)) {
    recurrent = nn::Recurrent(in, {.cell = *cell, .width = setting.width, .bidirectional = setting.bidirectional},
                              setting.parameters + ".recurrent", init);
  }
  const int64_t width = o.base == BaseLayer::none ? in : setting.width;
  if (o.attention) self = nn::SingleHeadAttention(o.score, setting.path + ".self", width, width, init);
}

Var AttentiveBlock::operator()(Pass& pass, const Var& x, const Tokens& source) const {
  Var h = x;
  if (linear.exists()) h = linear(pass, x, nn::Activation::tanh);
  if (conv1d.weight.value) h = ops::activation(pass, conv1d(pass, x, source.lengths), nn::Activation::tanh);
  if (!recurrent.layers.empty()) h = recurrent(pass, x, {.lengths = source.lengths}).h;
  if (self.path.empty()) return h;
  const Var both[] = {
      h, self(pass, h, self.keys(pass, h), h, {.role = nn::AttentionRole::self, .mask = lengths_mask(source)})};
  return ops::concat(pass, both);
}

AttentiveBlocks::AttentiveBlocks(const AttentiveBlocksOptions& o, const AttentiveBlocksSetting& setting, nn::Init init)
    : width(setting.in > 0 ? setting.in : setting.width), dropout(setting.dropout) {
  for (int64_t i = 0; i < o.blocks; ++i) {
    AttentiveBlocksSetting own = setting;
    own.path += "." + std::to_string(i);
    own.parameters += "." + std::to_string(i);
    blocks.emplace_back(o, own, width, init);
    if (o.base != BaseLayer::none) width = setting.width;
    if (o.attention) width *= 2;
    if (width > 2 * kMaxWidth) {  // it doubles with each block where there is no base layer
      throw Error(setting.path + ": blocks is " + std::to_string(o.blocks) + ", expected at most " + std::to_string(i) +
                  ": the states after that are " + std::to_string(width) + " wide");
    }
  }
}

Var AttentiveBlocks::operator()(Pass& pass, const Var& x, const Tokens& source) const {
  Var y = x;
  for (const AttentiveBlock& block : blocks) {
    y = ops::dropout(pass, block(pass, y, source), pass.next_dropout(dropout));
  }
  return y;
}

}  // namespace heed::models
