#pragma once
// What backward's tasks are told. Internal.
#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/plan.h"

namespace heed::kernels {

struct BackwardCall {
  const AttentionPlan::Details& plan;
  const AttentionInputs& in;
  const AttentionGradients& grad;
  const BackwardPartials& partials;
  // [chunk][B,Hk]: how far each task has come; null where no two tasks add to the same numbers.
  Progress* progress;
  int threads;
};

}  // namespace heed::kernels
