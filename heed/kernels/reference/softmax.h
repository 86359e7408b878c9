// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/softmax.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/softmax.h"

namespace heed::kernels::reference {

HEED_API void softmax_forward(View<const double, 2> x, View<double, 2> y);
HEED_API void softmax_backward(View<const double, 2> y, View<const double, 2> dy, View<double, 2> dx);
HEED_API void log_softmax_forward(View<const double, 2> x, View<double, 2> y);
HEED_API void log_softmax_backward(View<const double, 2> y, View<const double, 2> dy, View<double, 2> dx);

}  // namespace heed::kernels::reference
