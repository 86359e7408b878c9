// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalisation of the last dimension on the tape; weight and bias [E] may be empty.
#include "heed/autograd/tape.h"
#include "heed/base/export.h"

namespace heed::ops {

HEED_API Var layer_norm(const Context&, const Var& x, const Var& weight, const Var& bias, double eps = 1e-5);
HEED_API Var rms_norm(const Context&, const Var& x, const Var& weight, double eps = 1e-5);

}  // namespace heed::ops
