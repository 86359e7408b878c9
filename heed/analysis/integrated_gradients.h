// SPDX-License-Identifier: Apache-2.0
#pragma once
// Integrated gradients (Sundararajan et al. 2017) of the embeddings: the target's growth, from all embeddings zero to
// what they are, divided among the tokens.
//
//   IG_i = x_i . integral_0^1 d target(a x) / d x_i da        sum_i IG_i = target(x) - target(0)
//
// The integral is a sum over the middles of `steps` equal parts; how far the sum of all is from what it should be is
// the completeness error, which more steps make smaller.
#include <cstdint>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

struct IntegratedGradientsOptions {
  int64_t steps{32};  // passes forward and backward

  static void describe(IntegratedGradientsOptions& o, auto&& field) {
    field("steps", o.steps, "points at which gradients are taken on the way from no embeddings to the text's",
          Range::within(1, 10000));
  }
};

struct IntegratedGradients {
  std::vector<double> source{}, target{};  // of each token that the model read, begin and end included
  double value = 0, baseline = 0;          // the target with the embeddings, and with zeros in their place
  double completeness_error = 0;           // sum of all - (value - baseline)
};

HEED_API IntegratedGradients integrated_gradients(const nn::Pass&, const Question&,
                                                  const IntegratedGradientsOptions& = {});

}  // namespace heed::analysis
