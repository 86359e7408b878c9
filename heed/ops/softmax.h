// SPDX-License-Identifier: Apache-2.0
#pragma once
// Softmax and log-softmax over the last dimension, and the cross-entropy of logits, on the tape.
#include "heed/autograd/tape.h"
#include "heed/base/export.h"

namespace heed::ops {

HEED_API Var softmax(const Context&, const Var& x);
HEED_API Var log_softmax(const Context&, const Var& x);

// Label smoothing, and the id of padding.
struct CrossEntropyOptions {
  double smoothing{0};    // label smoothing, in [0, 1]
  int32_t ignored{-100};  // targets of this id are not in the loss: padding
};

// The loss as a mean to train on, and as a sum to add up over batches.
struct CrossEntropyResult {
  Var loss;           // the mean over the tokens that count; 0 where there are none
  double sum = 0;     // and before the division
  int64_t count = 0;  // of those tokens
};

// logits [...,V], targets [...] in i32.
HEED_API CrossEntropyResult cross_entropy(const Context&, const Var& logits, const Tensor& targets,
                                          const CrossEntropyOptions& = {});

}  // namespace heed::ops
