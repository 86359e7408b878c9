// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/elementwise.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/elementwise.h"

namespace heed::kernels::reference {

HEED_API void add_forward(View<const double, 2> a, View<const double, 2> b, View<double, 2> y);
HEED_API void add_backward(View<const double, 2> dy, View<double, 2> da, View<double, 2> db);

HEED_API void multiply_forward(View<const double, 2> a, View<const double, 2> b, View<double, 2> y);
HEED_API void multiply_backward(View<const double, 2> b, View<const double, 2> dy, View<double, 2> da);

HEED_API void add_row_forward(View<const double, 2> x, View<const double, 1> row, View<double, 2> y);
HEED_API void add_row_backward(View<const double, 2> dy, View<double, 2> dx, View<double, 1> drow);

HEED_API void scale_forward(View<const double, 2> x, double factor, View<double, 2> y);
HEED_API void scale_backward(View<const double, 2> dy, double factor, View<double, 2> dx);

HEED_API void copy_forward(View<const double, 2> x, View<double, 2> y);
HEED_API void copy_backward(View<const double, 2> dy, View<double, 2> dx);

}  // namespace heed::kernels::reference
