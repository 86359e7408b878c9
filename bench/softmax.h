// SPDX-License-Identifier: Apache-2.0
#pragma once
// Row kernels of the unfused baseline, vectorised: what a careful programmer puts between two sgemm calls.
#include <cstdint>

namespace heed::bench {

// row[0, n) <- softmax(scale * row), scale > 0, n > 0.
void softmax_row(float* row, int64_t n, float scale);

// dp[0, n) <- scale * p * (dp - sum(p * dp)): the gradient of softmax_row, from its result and the gradient of that.
void softmax_backward_row(const float* p, float* dp, int64_t n, float scale);

}  // namespace heed::bench
