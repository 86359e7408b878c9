// SPDX-License-Identifier: Apache-2.0
#include "heed/models/self_attentive.h"

#include "heed/base/error.h"
#include "heed/nn/pooling.h"

namespace heed::models {
namespace {

using nn::Pass;

constexpr const char* kName = "self_attentive";

[[noreturn]] void fail(const std::string& what) { throw Error(std::string(kName) + ": " + what); }

}  // namespace

SelfAttentive::SelfAttentive(const SelfAttentiveOptions& o, nn::Init init) : options_(o) {
  check_fields(kName, o);
  if (o.vocabulary < 1) fail("vocabulary is " + std::to_string(o.vocabulary) + ", expected 1 or more");
  if (o.outputs < 1) fail("outputs is " + std::to_string(o.outputs) + ", expected 1 or more");
  embedding_ = nn::Embedding(o.vocabulary, o.width, init);
  embedding_.factor = std::sqrt(static_cast<double>(o.width));
  const AttentiveBlocksSetting setting{.path = "blocks",
                                       .parameters = "blocks",
                                       .width = o.width,
                                       .bidirectional = o.bidirectional,
                                       .dropout = o.dropout};
  blocks_ = AttentiveBlocks(o.layers, setting, init);
  output_ = nn::Linear(blocks_.width, o.outputs, init);
}

Var SelfAttentive::states(Pass& pass, const Tokens& source) const {
  check_ids(kName, "source", source.ids);
  const int64_t S = source.ids.shape(1);
  if (S > options_.max_length) {
    fail("a row of " + std::to_string(S) + " tokens came, expected at most " + std::to_string(options_.max_length) +
         " (max_length)");
  }
  const Var embedded = pass.embeddings(nn::TextSide::source, embedding_(pass, source.ids));
  return blocks_(pass, ops::dropout(pass, embedded, pass.next_dropout(options_.dropout)), source);
}

Var SelfAttentive::logits(Pass& pass, const Tokens& source) const {
  const Var x = states(pass, source);
  if (options_.head == SelfAttentiveHead::tags) return output_(pass, x);
  const Var mean = nn::mean_pool(pass, x, source.lengths);
  return ops::reshape(pass, output_(pass, mean), {x.shape(0), 1, options_.outputs});
}

}  // namespace heed::models
