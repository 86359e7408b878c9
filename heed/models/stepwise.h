// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stepwise: the interface that beam search and sampling need of a model: begin with a source, one step per token, and a
// maximum length. A model of one's own with these three functions can be searched without being a Model.
#include <cstdint>
#include <span>

#include "heed/autograd/tape.h"
#include "heed/base/error.h"
#include "heed/base/export.h"
#include "heed/models/tokens.h"
#include "heed/nn/layers.h"
#include "heed/nn/pass.h"
#include "heed/nn/state.h"

namespace heed::models {

class HEED_API Stepwise {
 public:
  virtual ~Stepwise() = default;

  // The state before the first token, with the source encoded; a language model has none. Inference.
  virtual nn::State begin(nn::Pass&, const Tokens& source) const = 0;
  // Logits [B,n,V] of the token after each of the newest tokens [B,n], which are appended to the state.
  virtual Var step(nn::Pass&, const Tensor& ids, nn::State&) const = 0;
  // The longest source or target it can take.
  virtual int64_t max_length() const = 0;
  // A fourth, for searches over some tokens alone: the output layer for these, in this order. Where a pass has it
  // (nn::Pass::output_subset), step gives logits [B,n,tokens]. Throws Error for a token that the model does not have.
  virtual nn::Linear output_subset(nn::Pass&, std::span<const int32_t> /*tokens*/) const {
    throw Error("output_subset was called, expected a model that can compute the logits of some tokens alone");
  }
};

}  // namespace heed::models
