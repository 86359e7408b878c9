// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/rope.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/rope.h"

namespace heed::kernels::reference {

HEED_API void rope_tables(double base, View<double, 2> cos, View<double, 2> sin, int64_t first = 0);
HEED_API void rope_forward(const RopeTables<double>&, View<const double, 4> x, View<double, 4> y);
HEED_API void rope_backward(const RopeTables<double>&, View<const double, 4> dy, View<double, 4> dx);

}  // namespace heed::kernels::reference
