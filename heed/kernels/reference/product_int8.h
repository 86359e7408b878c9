// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of the linear layer in int8 (kernels/product_int8.h): how numbers are rounded to integers, which is
// defined in f32, and the product in double precision over those. Numbers are finite.
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/view.h"

namespace heed::kernels::reference {

// Integers times a scale.
struct Quantised {
  std::vector<int32_t> values;
  float scale = 0;
};

HEED_API Quantised quantise_row(std::span<const float> x);     // of what comes in
HEED_API Quantised quantise_output(std::span<const float> w);  // the weights of one output

// x [M,I]  w [O,I]  b [O] or empty  ->  y [M,O]
HEED_API void linear_int8(const View<const float, 2>& x, const View<const float, 2>& w, const View<const float, 1>& b,
                          const View<double, 2>& y);

}  // namespace heed::kernels::reference
