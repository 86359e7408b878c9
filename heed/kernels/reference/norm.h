// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/norm.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/norm.h"

namespace heed::kernels::reference {

HEED_API void layer_norm_forward(const NormInputs<double>&, const NormOutputs<double>&);
HEED_API void layer_norm_backward(const NormInputs<double>&, const NormGradients<double>&);
HEED_API void rms_norm_forward(const NormInputs<double>&, const NormOutputs<double>&);
HEED_API void rms_norm_backward(const NormInputs<double>&, const NormGradients<double>&);

}  // namespace heed::kernels::reference
