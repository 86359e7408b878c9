// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of the linear layer: the formula in double precision. See kernels/linear.h.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/activation.h"

namespace heed::kernels::reference {

struct LinearInputs {
  View<const double, 2> x{}, w{};  // [M,I]  [O,I]
  View<const double, 1> b{};       // [O]; empty: none
};

struct LinearOutputs {
  View<double, 2> y{}, z{};  // [M,O]; z if wanted
};

struct LinearGradients {
  View<const double, 2> dy{}, z{};  // [M,O]; z is not read where there is no activation
  View<double, 2> dx{}, dw{};       // [M,I]  [O,I]: added to; an empty view: not wanted
  View<double, 1> db{};             // [O]
};

HEED_API void linear_forward(const LinearInputs&, const LinearOutputs&, Activation);
HEED_API void linear_backward(const LinearInputs&, const LinearGradients&, Activation);

}  // namespace heed::kernels::reference
