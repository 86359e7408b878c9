// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/conv1d.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/kernels/conv1d.h"

namespace heed::kernels::reference {

HEED_API void conv1d_forward(const Conv1dInputs<double>&, const View<double, 3>& y);
HEED_API void conv1d_backward(const Conv1dInputs<double>&, const Conv1dGradients<double>&);

}  // namespace heed::kernels::reference
