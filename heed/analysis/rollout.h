// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention rollout (Abnar and Zuidema 2020) from one token of a Transformer: what share of it comes from each token
// that the model read, if every layer passed on half of what it was given and half of what it looked at, in the mean of
// its heads.
//
//   r = e_t;   from the last layer to the first:   r <- (r + A^T r) / 2,   A = mean_h A_h
//
// Cross-attention splits the same way: half stays on the target's tokens, half goes to the source's. One vector is
// carried through the transposed weights, whose rows are computed some at a time: never T x T.
#include <cstdint>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// Shares of all tokens that the model read, which sum to 1.
struct Rollout {
  std::vector<double> source{}, target{};
};

// From the state of a token after the last layer of its side. Throws Error where the token is not there, and for other
// families: recurrent layers pass words on by ways that are no attention.
HEED_API Rollout rollout(const nn::Pass&, const Question&, nn::TextSide, int64_t position);

}  // namespace heed::analysis
