// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of a matrix and a vector for the unfused baseline: bound by reading the matrix, which kernels::product(),
// with its one order of summation, reads more slowly for a single row.
#include "heed/base/view.h"

namespace heed::bench {

// rows [M,N], each contiguous.
void rows_times_vector(const View<const float, 2>& rows, const float* x, float* y);  // x [N]  ->  y [M]
void vector_times_rows(const float* x, const View<const float, 2>& rows, float* y);  // x [M]  ->  y [N]

}  // namespace heed::bench
