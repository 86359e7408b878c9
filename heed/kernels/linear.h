// SPDX-License-Identifier: Apache-2.0
#pragma once
// The linear layer with its bias and activation:
//
//   z = x w^T + b,   y = act(z)          x [M,I]  w [O,I]  b [O]  ->  z, y [M,O]
//
// Bias and activation are applied tile by tile, while a tile of the product is in the cache. Gradients are
// accumulated; an empty view means 'not wanted'. Results are the same bits for any number of threads. Nothing is
// allocated and nothing can fail: shapes are the caller's to check. Not here: the twin in double
// (kernels/reference/linear.h).
#include <cstddef>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"
#include "heed/kernels/activation.h"
#include "heed/kernels/weight.h"

namespace heed::kernels {

struct LinearInputs {
  View<const float, 2> x{};  // [M,I], contiguous rows
  Weight w{};                // [O,I]; backward reads one in f32 that is not packed
  View<const float, 1> b{};  // [O], contiguous; empty: none
};

struct LinearOutputs {
  View<float, 2> y{};  // [M,O], contiguous rows
  View<float, 2> z{};  // [M,O], if wanted: what backward needs, unless there is no activation
};

struct LinearGradients {
  View<const float, 2> dy{};  // [M,O]
  View<const float, 2> z{};   // [M,O], as forward gave it; empty where there is no activation
  View<float, 2> dx{};        // [M,I]
  View<float, 2> dw{};        // [O,I], one stride is 1, as for a Weight
  View<float, 1> db{};        // [O]
};

HEED_API void linear_forward(const LinearInputs&, const LinearOutputs&, Activation, Parallel&) noexcept;

// The workspace that backward needs, in bytes.
HEED_API size_t linear_backward_bytes(int64_t rows, int64_t outputs, Activation);
HEED_API void linear_backward(const LinearInputs&, const LinearGradients&, Activation, Workspace&, Parallel&) noexcept;

}  // namespace heed::kernels
