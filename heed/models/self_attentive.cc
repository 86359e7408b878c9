#include "heed/models/self_attentive.h"

#include <optional>

#include "heed/base/error.h"

namespace heed::models {
namespace {

using nn::Pass;

constexpr const char* kName = "self_attentive";

[[noreturn]] void refuse(const std::string& what) { throw Error(std::string(kName) + ": " + what); }

std::optional<nn::Cell> cell_of(BaseLayer base) {
  if (base == BaseLayer::rnn) return nn::Cell::rnn;
  if (base == BaseLayer::gru) return nn::Cell::gru;
  if (base == BaseLayer::lstm) return nn::Cell::lstm;
  return {};
}

}  // namespace

SelfAttentiveBlock::SelfAttentiveBlock(const SelfAttentiveOptions& o, int64_t in, const std::string& path, Rng& rng) {
  if (o.base == BaseLayer::linear) linear = nn::Linear(in, o.width, rng);
  if (o.base == BaseLayer::conv1d) conv1d = nn::Conv1d(in, o.width, o.taps, rng);
  if (const auto cell = cell_of(o.base)) {
    recurrent = nn::Recurrent(in, {.cell = *cell, .width = o.width, .bidirectional = o.bidirectional}, rng);
  }
  const int64_t width = o.base == BaseLayer::none ? in : o.width;
  if (o.attention) self = nn::Alignment(o.score, path + ".self", width, width, rng);
}

Var SelfAttentiveBlock::operator()(Pass& pass, const Var& x, const Tokens& source) const {
  Var h = x;
  if (linear.weight.value) h = linear(pass, x, nn::Activation::tanh);
  if (conv1d.weight.value) h = ops::activation(pass, conv1d(pass, x, source.lengths), nn::Activation::tanh);
  if (!recurrent.layers.empty()) h = recurrent(pass, x, source.lengths).h;
  if (self.path.empty()) return h;
  const Var both[] = {
      h, self(pass, h, self.keys(pass, h), h, {.role = nn::AttentionRole::self, .mask = lengths_mask(source)})};
  return ops::concat(pass, both);
}

SelfAttentive::SelfAttentive(const SelfAttentiveOptions& o, Rng& rng) : options_(o) {
  check_fields(kName, o);
  if (o.vocabulary < 1) refuse("vocabulary is " + std::to_string(o.vocabulary) + ", expected 1 or more");
  if (o.outputs < 1) refuse("outputs is " + std::to_string(o.outputs) + ", expected 1 or more");
  embedding_ = nn::Embedding(o.vocabulary, o.width, rng);
  embedding_.factor = std::sqrt(static_cast<double>(o.width));
  int64_t width = o.width;
  for (int64_t i = 0; i < o.blocks; ++i) {
    blocks_.emplace_back(o, width, "blocks." + std::to_string(i), rng);
    if (o.base != BaseLayer::none) width = o.width;
    if (o.attention) width *= 2;
  }
  output_ = nn::Linear(width, o.outputs, rng);
}

Var SelfAttentive::logits(Pass& pass, const Tokens& source) const {
  check_ids(kName, "source", source.ids);
  const int64_t S = source.ids.shape(1);
  if (S > options_.max_length) {
    refuse("a row of " + std::to_string(S) + " tokens came, expected at most " + std::to_string(options_.max_length) +
           " (max_length)");
  }
  Var x = ops::dropout(pass, embedding_(pass, source.ids), pass.next_dropout(options_.dropout));
  for (const SelfAttentiveBlock& block : blocks_) {
    x = ops::dropout(pass, block(pass, x, source), pass.next_dropout(options_.dropout));
  }
  if (options_.head == SelfAttentiveHead::tags) return output_(pass, x);
  const Var mean = nn::mean_of_tokens(pass, x, source.lengths);
  return ops::reshape(pass, output_(pass, mean), {x.shape(0), 1, options_.outputs});
}

}  // namespace heed::models
