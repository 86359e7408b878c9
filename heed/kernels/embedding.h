// SPDX-License-Identifier: Apache-2.0
#pragma once
// Embedding lookup: y_n = factor table[ids_n].
// Results, gradients too, are the same bits for any number of threads, however often an id repeats.
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"

namespace heed::kernels {

// table [V,E]  ids [N], each in [0, V)  ->  y [N,E]
HEED_API void embedding_forward(View<const float, 2> table, View<const int32_t, 1> ids, double factor, View<float, 2> y,
                                Parallel&) noexcept;
// dtable[ids_n] += factor dy_n, in the order of n.
HEED_API void embedding_backward(View<const int32_t, 1> ids, View<const float, 2> dy, double factor,
                                 View<float, 2> dtable, Parallel&) noexcept;

}  // namespace heed::kernels
