// SPDX-License-Identifier: Apache-2.0
#pragma once
// Softmax cross-entropy of logits z [N,V] against target ids, with label smoothing s:
//   loss_n = -sum_j q_j log p_j,  p = softmax(z_n),  q = (1 - s) [j = target_n] + s / V
// No probabilities are stored, and nothing leaves the range of f32. A target that equals `ignored` has loss
// and gradient zero and is not counted, whatever its logits are. Results are the same bits for any number of
// threads.
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"

namespace heed::kernels {

template <class T>
struct CrossEntropyInputs {
  View<const T, 2> logits{};         // [N,V], any stride between rows
  View<const int32_t, 1> targets{};  // [N], each in [0, V) or `ignored`
  double smoothing{0};               // in [0, 1]
  int32_t ignored{-100};
};

template <class T>
struct CrossEntropyOutputs {
  View<T, 1> losses{};  // [N], 0 where ignored
  View<T, 2> stats{};   // [N,2], if wanted: the maximum and sum e^(z - max), for backward
};

// The sum is taken in double, in the order of tokens.
struct CrossEntropySum {
  double sum = 0;
  int64_t count = 0;  // tokens that are not ignored

  double mean() const { return count ? sum / static_cast<double>(count) : 0; }
};

HEED_API CrossEntropySum cross_entropy_forward(const CrossEntropyInputs<float>&, const CrossEntropyOutputs<float>&,
                                               Parallel&) noexcept;
// d_logits += scale (p - q); scale is d_loss / count for the mean.
HEED_API void cross_entropy_backward(const CrossEntropyInputs<float>&, View<const float, 2> stats, double scale,
                                     View<float, 2> d_logits, Parallel&) noexcept;

}  // namespace heed::kernels
