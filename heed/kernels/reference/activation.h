// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/activation.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/activation.h"

namespace heed::kernels::reference {

HEED_API double activate(Activation, double x);
HEED_API double slope(Activation, double x);  // act'(x); of relu at 0: 0

HEED_API void activation_forward(Activation, View<const double, 2> x, View<double, 2> y);
HEED_API void activation_backward(Activation, View<const double, 2> x, View<const double, 2> dy, View<double, 2> dx);

}  // namespace heed::kernels::reference
