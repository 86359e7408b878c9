// SPDX-License-Identifier: Apache-2.0
#pragma once
// Softmax and its logarithm over rows:
//   softmax      y = e^(x - max) / sum e^(x - max)
//   log-softmax  y = x - max - log(sum e^(x - max))
// Not here: masks (attention has its own softmax). A row that is -inf throughout, or that has +inf or NaN somewhere, is
// NaN, as the formula is. Rows may have any stride. Results are the same bits for any number of threads.
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"

namespace heed::kernels {

// All views [rows, width]; y may be x. Backward needs y alone, and accumulates into dx:
//   softmax      dx += y (dy - sum dy y)
//   log-softmax  dx += dy - e^y sum dy
HEED_API void softmax_forward(View<const float, 2> x, View<float, 2> y, Parallel&) noexcept;
HEED_API void softmax_backward(View<const float, 2> y, View<const float, 2> dy, View<float, 2> dx, Parallel&) noexcept;
HEED_API void log_softmax_forward(View<const float, 2> x, View<float, 2> y, Parallel&) noexcept;
HEED_API void log_softmax_backward(View<const float, 2> y, View<const float, 2> dy, View<float, 2> dx,
                                   Parallel&) noexcept;

}  // namespace heed::kernels
