// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each head of a model does to a target: by the gradient of its gate, all heads in one backward pass, and
// measured, with each head switched off in turn.
//
//   out_h = gate_h sum_j a_hj v_hj        head_gradients: d target / d gate_h, at gate_h = 1
//                                         head_effects: target(gate_h = 0) - target(gate_h = 1)
//
// Where the target were linear in a gate, the effect would be the gradient with the other sign.
#include <cstdint>
#include <string>
#include <vector>

#include "heed/analysis/gates.h"
#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// One number of one head.
struct HeadValue {
  std::string layer{};  // "encoder.1.self"
  int64_t head = 0;
  double value = 0;
};

// Of every head, in the order in which the layers run. What the pass's observer gates stays gated. Throws Error for a
// model without attention.
HEED_API std::vector<HeadValue> head_gradients(const nn::Pass&, const Question&);
// The change that gates make, measured in two passes: target with them - target without.
HEED_API double effect_of(const nn::Pass&, const Question&, const std::vector<HeadGate>&);
// Two passes a head.
HEED_API std::vector<HeadValue> head_effects(const nn::Pass&, const Question&);

}  // namespace heed::analysis
