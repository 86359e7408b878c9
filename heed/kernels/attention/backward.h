#pragma once
// What backward's tasks are told. Internal.
#include "heed/kernels/attention/attention.h"

namespace heed::kernels {

struct BackwardCall {
  const AttentionPlan& plan;
  const AttentionInputs& in;
  const AttentionGradients& grad;
};

}  // namespace heed::kernels
