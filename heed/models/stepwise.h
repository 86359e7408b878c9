#pragma once
// Stepwise: what a search needs of a model, and nothing else: to begin with a source, to go on by tokens, and how far.
// A model of one's own that has these three functions can be searched without being a Model.
#include <cstdint>

#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/models/tokens.h"
#include "heed/nn/pass.h"
#include "heed/nn/state.h"

namespace heed::models {

class HEED_API Stepwise {
 public:
  virtual ~Stepwise() = default;

  // What is known before the first token: of the source, which a language model has none of. Inference.
  virtual nn::State begin(nn::Pass&, const Tokens& source) const = 0;
  // Logits [B,n,V] of what comes after each of the newest tokens [B,n], which go into the state.
  virtual Var step(nn::Pass&, const Tensor& ids, nn::State&) const = 0;
  // The longest source or target it can take.
  virtual int64_t max_length() const = 0;
};

}  // namespace heed::models
