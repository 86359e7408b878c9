// SPDX-License-Identifier: Apache-2.0
#pragma once
// What numbers are stored as (DType; i8 in weights alone, with scales: kernels/weight.h), and those of 16 bits, for
// storage only: BFloat16 (the upper half of an f32) and Float16 (IEEE binary16). Arithmetic is done in f32; going there
// is exact, coming back rounds to the nearest, ties to even, once, from f32 and from f64. Not here: arrays of them
// (tensor/convert.h).
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heed {

enum class DType : uint8_t { f32, bf16, f16, f64, i32, i8 };

constexpr const char* name_of(DType dtype) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "f64", "i32", "int8"};
  return kNames[static_cast<size_t>(dtype)];
}

namespace detail {

// An f64 as the f32 that rounds to 16 bits as the f64 itself would: cut off, with the last bit set where something was
// lost. To the nearest here, and to the nearest again there, could make a tie of what is none.
constexpr float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return nearest;
  const bool away = value < 0 ? back < value : back > value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(nearest) - (away ? 1u : 0u)) | 1u);
}

// A choice without a branch: loops over the conversions below vectorise.
constexpr uint32_t select(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0u - uint32_t{condition};
  return (yes & mask) | (no & ~mask);
}

}  // namespace detail

struct BFloat16 {
  uint16_t bits;

  static constexpr BFloat16 from(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7FFFu + (u >> 16 & 1u)) >> 16;
    // A NaN is kept one: rounding could carry its last bits into the exponent and away.
    const bool nan = (u & 0x7FFFFFFFu) > 0x7F800000u;
    return {static_cast<uint16_t>(detail::select(nan, u >> 16 | 0x40u, rounded))};
  }
  static constexpr BFloat16 from(double value) { return from(detail::round_to_odd(value)); }
  constexpr explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

struct Float16 {
  uint16_t bits;

  static constexpr Float16 from(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
    // Below 2^-14: adding 1/2, whose last place is 2^-24, rounds to a multiple of it.
    const float small = std::bit_cast<float>(std::min(magnitude, kLeastNormal)) + 0.5f;
    const uint32_t subnormal = std::bit_cast<uint32_t>(small) - 0x3F000000u;
    const uint32_t rebased = magnitude - (112u << 23);
    const uint32_t normal = (rebased + 0xFFFu + (rebased >> 13 & 1u)) >> 13;
    const uint32_t finite = detail::select(magnitude < kLeastNormal, subnormal, normal);
    const uint32_t number =
        detail::select(magnitude >= 0x477FF000u, 0x7C00u, finite);  // 65520 and more round to infinity
    const uint32_t nan = 0x7E00u | (magnitude >> 13 & 0x1FFu);
    return {static_cast<uint16_t>(sign | detail::select(magnitude > 0x7F800000u, nan, number))};
  }
  static constexpr Float16 from(double value) { return from(detail::round_to_odd(value)); }
  constexpr explicit operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = bits >> 10 & 0x1Fu, fraction = bits & 0x3FFu;
    const auto subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(fraction)) * 0x1p-24f);
    const uint32_t wide = detail::select(exponent == 31, 0x7F800000u, (exponent + 112u) << 23) | fraction << 13;
    return std::bit_cast<float>(sign | detail::select(exponent == 0, subnormal, wide));
  }

 private:
  static constexpr uint32_t kLeastNormal = 0x38800000u;  // 2^-14
};

template <class T>
inline constexpr DType kDType = DType::f32;
template <>
inline constexpr DType kDType<double> = DType::f64;
template <>
inline constexpr DType kDType<int32_t> = DType::i32;
template <>
inline constexpr DType kDType<int8_t> = DType::i8;
template <>
inline constexpr DType kDType<BFloat16> = DType::bf16;
template <>
inline constexpr DType kDType<Float16> = DType::f16;

}  // namespace heed
