// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two forward kernels, between which attention_forward (plan.cc) chooses. Internal.
#include <cmath>
#include <limits>
#include <numbers>

#include "heed/kernels/attention/plan.h"

namespace heed::kernels {

// The arguments of a call.
struct ForwardCall {
  const AttentionPlan::Details& plan;
  const AttentionInputs& in;
  const AttentionOutputs& out;
  int threads;
};

void forward_tiles(const ForwardCall&, Workspace&, Parallel&) noexcept;   // forward.cc
void forward_decode(const ForwardCall&, Workspace&, Parallel&) noexcept;  // decode.cc, for one query

// Writes a row's maximum and sum, in base 2, to the outputs that are wanted.
inline void write_row_stats(const AttentionOutputs& to, int64_t b, int64_t h, int64_t t, float max, float sum) {
  if (to.stats) {
    float* p = to.stats.at(b, h, t);
    p[0] = max;
    p[1] = sum;
  }
  if (to.lse) {
    const double lse = (double{max} + std::log2(double{sum})) * std::numbers::ln2;
    to.lse(b, h, t) = sum == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(lse);
  }
}

}  // namespace heed::kernels
