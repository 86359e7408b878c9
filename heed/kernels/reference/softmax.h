#pragma once
// The specification of kernels/softmax.h: the same calls in double precision, written to be read.
#include "heed/base/view.h"
#include "heed/kernels/softmax.h"

namespace heed::kernels::reference {

void softmax_forward(View<const double, 2> x, View<double, 2> y);
void softmax_backward(View<const double, 2> y, View<const double, 2> dy, View<double, 2> dx);
void log_softmax_forward(View<const double, 2> x, View<double, 2> y);
void log_softmax_backward(View<const double, 2> y, View<const double, 2> dy, View<double, 2> dx);

}  // namespace heed::kernels::reference
