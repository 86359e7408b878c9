// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/loss.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace heed::kernels::reference {

CrossEntropySum cross_entropy_forward(const CrossEntropyInputs<double>& in, const CrossEntropyOutputs<double>& out) {
  const auto& [z, targets, smoothing, ignored] = in;
  const int64_t N = z.shape(0), V = z.shape(1);
  CrossEntropySum total;
  for (int64_t n = 0; n < N; ++n) {
    out.losses(n) = 0;
    if (out.stats) out.stats(n, 0) = 0, out.stats(n, 1) = 1;
    if (targets(n) == ignored) continue;
    assert(targets(n) >= 0 && targets(n) < V);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, mean = 0;
    for (int64_t j = 0; j < V; ++j) largest = std::max(largest, z(n, j));
    for (int64_t j = 0; j < V; ++j) sum += std::exp(z(n, j) - largest);
    for (int64_t j = 0; j < V; ++j) mean += (z(n, j) - largest) / static_cast<double>(V);

    // -log p_j = log(sum) - (z_j - largest), and what is smoothed is the mean of that.
    double loss = std::log(sum);
    if (smoothing < 1) loss -= (1 - smoothing) * (z(n, targets(n)) - largest);
    if (smoothing > 0) loss -= smoothing * mean;
    out.losses(n) = loss;
    if (out.stats) out.stats(n, 0) = largest, out.stats(n, 1) = sum;
    total.sum += loss;
    ++total.count;
  }
  return total;
}

void cross_entropy_backward(const CrossEntropyInputs<double>& in, View<const double, 2> stats, double scale,
                            View<double, 2> d_logits) {
  const auto& [z, targets, smoothing, ignored] = in;
  const int64_t N = z.shape(0), V = z.shape(1);
  for (int64_t n = 0; n < N; ++n) {
    if (targets(n) == ignored) continue;
    for (int64_t j = 0; j < V; ++j) {
      const double p = std::exp(z(n, j) - stats(n, 0)) / stats(n, 1);
      const double q = (j == targets(n) ? 1 - smoothing : 0) + smoothing / static_cast<double>(V);
      d_logits(n, j) += scale * (p - q);
    }
  }
}

}  // namespace heed::kernels::reference
