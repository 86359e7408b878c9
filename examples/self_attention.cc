// SPDX-License-Identifier: Apache-2.0
// Self-attention without a single parameter: y_i = sum_j softmax_j(x_i . x_j) x_j.
#include <array>
#include <cstdio>

#include "heed/nn/attention.h"

int main() {
  using namespace heed;
  Parallel threads(1);
  Workspace workspace;
  Rng rng(1);
  nn::Pass pass{{threads, workspace}};
  const nn::Attention attention({.width = 4, .score = nn::Score::dot, .projections = false}, "self", rng);

  const std::array<float, 12> words{1, 0, 0, 0, 0, 2, 0, 1, 0, 1.5, 0.5, 0};
  const Var x = Tensor::of({1, 3, 4}, words);  // [B,T,width]
  const Var y = attention(pass, x, x, {});

  for (int64_t i = 0; i < 3; ++i) {
    const float* row = y.value().data<float>() + 4 * i;
    std::printf("%5.2f %5.2f %5.2f %5.2f\n", row[0], row[1], row[2], row[3]);
  }
}
