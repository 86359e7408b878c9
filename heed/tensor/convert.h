// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conversion between floating dtypes: each number is rounded once, to the nearest, ties to even; NaN stays NaN.
// Not here: what belongs to a shape (tensor.h), elements that only files have (io/element.h).
#include <cstddef>
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/half.h"

namespace heed {

// Bytes of one number.
constexpr size_t element_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::i8:
      return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) { return dtype != DType::i32 && dtype != DType::i8; }

// Of 16 bits: for storage, in caches and weights. Ops compute in f32 or f64.
constexpr bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

// `count` numbers at `from` go to `to`; the two do not overlap. Both dtypes are floating, and may be the same.
HEED_API void convert_numbers(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype,
                              int64_t count) noexcept;

}  // namespace heed
