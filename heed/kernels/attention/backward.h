// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of backward's tasks. Internal.
#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/plan.h"

namespace heed::kernels {

struct BackwardCall {
  const AttentionPlan::Details& plan;
  const AttentionInputs& in;
  const AttentionGradients& grad;
  const BackwardPartials& partials;
  // [chunk][B,Hk]: how far each task has come; null where no two tasks accumulate into the same elements.
  Progress* progress;
  int threads;
};

}  // namespace heed::kernels
