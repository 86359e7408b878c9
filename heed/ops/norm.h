#pragma once
// Normalisation of the last dimension on the tape; weight and bias [E] may be empty.
#include "heed/autograd/tape.h"

namespace heed::ops {

Var layer_norm(const Context&, const Var& x, const Var& weight, const Var& bias, double eps = 1e-5);
Var rms_norm(const Context&, const Var& x, const Var& weight, double eps = 1e-5);

}  // namespace heed::ops
