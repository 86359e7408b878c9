// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/loss.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/loss.h"

namespace heed::kernels::reference {

HEED_API CrossEntropySum cross_entropy_forward(const CrossEntropyInputs<double>&, const CrossEntropyOutputs<double>&);
HEED_API void cross_entropy_backward(const CrossEntropyInputs<double>&, View<const double, 2> stats, double scale,
                                     View<double, 2> d_logits);

}  // namespace heed::kernels::reference
