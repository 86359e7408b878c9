// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementwise operations: sums, products, a row vector broadcast over rows, a factor, copies. Views are
// [rows, width] with any stride between rows, so that a slice of the last dimension is one too: a concatenation is a
// copy into each slice of the result, a split is a copy from each slice, and each is the other's backward. Backward
// accumulates; an empty gradient view means 'not wanted'. Results are the same bits for any number of threads.
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"

namespace heed::kernels {

// y = a + b; y may be a or b.
HEED_API void add_forward(View<const float, 2> a, View<const float, 2> b, View<float, 2> y, Parallel&) noexcept;
// da += dy, db += dy.
HEED_API void add_backward(View<const float, 2> dy, View<float, 2> da, View<float, 2> db, Parallel&) noexcept;

// y = a b, number by number; y may be a or b.
HEED_API void multiply_forward(View<const float, 2> a, View<const float, 2> b, View<float, 2> y, Parallel&) noexcept;
// da += dy b. That of b is the same call with a in the place of b.
HEED_API void multiply_backward(View<const float, 2> b, View<const float, 2> dy, View<float, 2> da, Parallel&) noexcept;

// y_r = x_r + row; y may be x. A bias [E] over [B,T,E] has B T rows; a table of positions [T,E] has B, of width T E.
HEED_API void add_row_forward(View<const float, 2> x, View<const float, 1> row, View<float, 2> y, Parallel&) noexcept;
// dx += dy, drow += sum_r dy_r.
HEED_API void add_row_backward(View<const float, 2> dy, View<float, 2> dx, View<float, 1> drow, Parallel&) noexcept;

// y = factor x; y may be x.
HEED_API void scale_forward(View<const float, 2> x, double factor, View<float, 2> y, Parallel&) noexcept;
// dx += factor dy.
HEED_API void scale_backward(View<const float, 2> dy, double factor, View<float, 2> dx, Parallel&) noexcept;

// y = x.
HEED_API void copy_forward(View<const float, 2> x, View<float, 2> y, Parallel&) noexcept;
// dx += dy.
HEED_API void copy_backward(View<const float, 2> dy, View<float, 2> dx, Parallel&) noexcept;

}  // namespace heed::kernels
