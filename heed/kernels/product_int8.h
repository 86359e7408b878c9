// SPDX-License-Identifier: Apache-2.0
#pragma once
// The linear layer over a weight in int8 (DType::i8, kernels/weight.h), for inference:
//
//   q[m,i] = round(x[m,i] * (127 / a[m])),   a[m] = max_i |x[m,i]|,   s[m] = a[m] / 127      each row of x by itself
//   y[m,o] = act(sum_i q[m,i] w[o,i] * (s[m] * scale[o]) + b[o])
//
// All roundings but that of q are those of f32, to the nearest, ties to even; q is rounded to the nearest integer, ties
// to even. The sum is one of integers and exact, so that y has the same bits for any instruction set, any number of
// threads, and whatever other rows x has. A row with all |x| < 2^-100 counts as zero; one with NaN or infinity gives
// NaN. Not here: the twin (kernels/reference/product_int8.h).
#include <cstddef>
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/kernels/activation.h"
#include "heed/kernels/linear.h"
#include "heed/kernels/weight.h"

namespace heed::kernels {

// How q is stored, by the instructions that read it: q + 128 as unsigned bytes (AVX-512 VNNI), or 16 bits, in which the
// second and third of each four inputs change places (all others).
enum class Int8Form : uint8_t { bytes, words };

// What is fastest on this processor.
HEED_API Int8Form best_int8_form();

// Rows x [M,I] as q and s. It borrows its memory.
struct QuantisedRows {
  const std::byte* values = nullptr;  // rows, `stride` bytes apart
  const float* scales = nullptr;      // [M]: s
  int64_t rows = 0, inputs = 0, stride = 0;
  Int8Form form{};
};

HEED_API size_t quantised_rows_bytes(int64_t rows, int64_t inputs);
// Into the caller's memory, aligned as a Workspace is. x [M,I] has contiguous rows.
HEED_API QuantisedRows quantise_rows(const View<const float, 2>& x, Int8Form, std::byte* to, Parallel&) noexcept;

struct LinearInt8Inputs {
  QuantisedRows x{};
  Weight w{};                // [O,I] in int8, packed
  View<const float, 1> b{};  // [O], contiguous; empty: none
};

HEED_API void linear_int8(const LinearInt8Inputs&, const View<float, 2>& y, Activation, Parallel&) noexcept;

}  // namespace heed::kernels
