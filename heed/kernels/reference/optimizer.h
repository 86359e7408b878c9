// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/optimizer.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/optimizer.h"

namespace heed::kernels::reference {

HEED_API void sgd_step(const SgdOptions&, const StepBuffers<double>&, View<double, 1> velocity);
HEED_API void adam_step(const AdamOptions&, const StepBuffers<double>&, const AdamMoments<double>&);
HEED_API double gradient_norm(View<const double, 1> gradients);

}  // namespace heed::kernels::reference
