// SPDX-License-Identifier: Apache-2.0
#pragma once
// y = act(x w^T + b) on the tape: x [...,I], w [O,I], b [O] -> y [...,O].
#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/activation.h"
#include "heed/kernels/weight.h"

namespace heed::ops {

using kernels::Activation;

// b may be empty.
HEED_API Var linear(const Context&, const Var& x, const Var& w, const Var& b = {}, Activation = Activation::none);

// For inference: a weight that was packed once, or is stored in 16 bits. x in f32; in int8 its rows are rounded, too
// (kernels/product_int8.h).
HEED_API Tensor linear(const Context&, const Tensor& x, const kernels::Weight& w, const Tensor& b = {},
                       Activation = Activation::none);

}  // namespace heed::ops
