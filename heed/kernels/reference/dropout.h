// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/dropout.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/dropout.h"

namespace heed::kernels::reference {

HEED_API void dropout_forward(const ElementDropout&, View<const double, 1> x, View<const double, 1> residual,
                              View<double, 1> y);
HEED_API void dropout_backward(const ElementDropout&, View<const double, 1> dy, View<double, 1> dx);

}  // namespace heed::kernels::reference
