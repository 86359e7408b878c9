#pragma once
// What backward's tasks are told. Internal.
#include "heed/kernels/attention/attention.h"

namespace heed::kernels {

struct BackwardCall {
  const AttentionPlan& plan;
  const AttentionInputs& in;
  const AttentionGradients& grad;
  // [chunk][B,Hk]: how far each task has come with dq; null where no two tasks share rows of it.
  Progress* progress;
};

}  // namespace heed::kernels
