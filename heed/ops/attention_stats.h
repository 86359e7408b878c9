// SPDX-License-Identifier: Apache-2.0
#pragma once
// The softmax statistics of the f64 twin in the form of the fused kernel's, so that observers read both alike. Internal
// to ops.
#include <limits>
#include <numbers>

#include "heed/base/view.h"
#include "heed/tensor/tensor.h"

namespace heed::ops {

// Where the twin puts the log-sum-exp of each row, [B,H,T] of stats [B,H,T,2].
inline View<double, 3> lse_of(const Tensor& stats) {
  const int64_t B = stats.shape(0), H = stats.shape(1), T = stats.shape(2);
  return {stats.data<double>(), {B, H, T}, {2 * H * T, 2 * T, 2}};
}

// weight = e^(score - lse) = 2^(score * log2(e) - stats[0]) / stats[1]; a row that sees nothing has the sum 0.
inline void stats_from_lse(const Tensor& stats) {
  for (double* row = stats.data<double>(); row != stats.data<double>() + stats.size(); row += 2) {
    const bool blind = row[0] == -std::numeric_limits<double>::infinity();
    row[0] = blind ? 0 : row[0] * std::numbers::log2e;
    row[1] = blind ? 0 : 1;
  }
}

}  // namespace heed::ops
