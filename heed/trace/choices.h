// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a search chose from: a model that is searched as it is, and whose logits are looked at on the way. Internal.
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/decode/search.h"
#include "heed/models/stepwise.h"
#include "heed/trace/trace.h"

namespace heed::trace {

// The most likely tokens of one row of logits, and the log-probabilities of some that were asked for.
struct Choice {
  std::vector<std::pair<int32_t, double>> best{};  // token and log-probability, the best first
  std::map<int32_t, double> of{};
};
// Row i of logits [n,V] in f32 or f64.
Choice choice_of(const Tensor& logits, int64_t row, int64_t wanted, std::span<const int32_t> tokens);

// For one sentence. Logits are looked at when the next step comes, as the search has left them: a repetition penalty is
// in them.
class Choices final : public models::Stepwise {
 public:
  Choices(const models::Stepwise& model, int64_t wanted, int32_t end) : model_(model), wanted_(wanted), end_(end) {}

  nn::State begin(nn::Pass& pass, const models::Tokens& source) const override { return model_.begin(pass, source); }
  Var step(nn::Pass&, const Tensor& ids, nn::State&) const override;
  int64_t max_length() const override { return model_.max_length(); }

  // After the search, with what it found.
  void finish(std::span<const decode::Hypothesis> found);
  // At the query-th token that a node read; the last one, below 0.
  const Choice& at(int64_t node, int64_t query = -1) const;
  DType dtype() const { return dtype_; }  // of the logits

 private:
  void look(std::span<const int32_t> next) const;

  const models::Stepwise& model_;
  const int64_t wanted_;
  const int32_t end_;
  // A search takes a const model: what is seen is no part of what the model does.
  mutable std::map<int64_t, std::vector<Choice>> nodes_;
  mutable std::vector<int64_t> newest_;  // nodes of the rows of the last step
  mutable Tensor ids_, logits_;          // of that step
  mutable DType dtype_ = DType::f32;
};

}  // namespace heed::trace
