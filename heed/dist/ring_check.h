// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of what ring attention is given: by a rank alone, and by all of them together, so that a rank with a wrong
// argument does not leave the others waiting. Internal to ring_attention.cc.
#include <string>

#include "heed/dist/communicator.h"
#include "heed/dist/placement.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/observe.h"

namespace heed::dist {

// One call of a pass on one rank. The views that its pass does not have are empty.
struct RingCall {
  enum class Pass { forward, backward, observe };
  Pass pass = Pass::forward;
  const kernels::AttentionInputs& in;
  const kernels::AttentionOptions& options;
  kernels::AttentionOutputs out{};
  kernels::AttentionGradients grad{};
  View<const float, 4> stats{};
  kernels::AttentionObservations to{};
};

// Throws the same kind of Error on all ranks where the arguments of one are wrong, or differ from those of rank 0 where
// they should not.
void check_together(const RingCall& call, const Placement& placement, Communicator& communicator);

}  // namespace heed::dist
