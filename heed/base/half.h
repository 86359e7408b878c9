#pragma once
// What numbers are stored as (DType), and those of 16 bits, for storage only: BFloat16 (the upper half of an f32) and
// Float16 (IEEE binary16). Arithmetic is done in f32; going there is exact, coming back rounds to the nearest, ties to
// even.
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heed {

enum class DType : uint8_t { f32, bf16, f16, f64, i32 };

constexpr const char* name_of(DType dtype) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "f64", "i32"};
  return kNames[static_cast<size_t>(dtype)];
}

struct BFloat16 {
  uint16_t bits;

  static constexpr BFloat16 from(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    // A NaN is kept one: rounding could carry its last bits into the exponent and away.
    if ((u & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>(u >> 16 | 0x40u)};
    return {static_cast<uint16_t>((u + 0x7FFFu + (u >> 16 & 1u)) >> 16)};
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

struct Float16 {
  uint16_t bits;

  static constexpr Float16 from(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
    uint32_t half = 0;
    if (magnitude > 0x7F800000u) {
      half = 0x7E00u | (magnitude >> 13 & 0x1FFu);  // NaN
    } else if (magnitude >= 0x477FF000u) {
      half = 0x7C00u;  // 65520 and more round to infinity
    } else if (magnitude < 0x38800000u) {
      // Below 2^-14: adding 1/2, whose last place is 2^-24, rounds to a multiple of it.
      half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    } else {
      const uint32_t rebased = magnitude - (112u << 23);
      half = (rebased + 0xFFFu + (rebased >> 13 & 1u)) >> 13;
    }
    return {static_cast<uint16_t>(sign | half)};
  }
  constexpr explicit operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = bits >> 10 & 0x1Fu, fraction = bits & 0x3FFu;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    const uint32_t wide = exponent == 31 ? 0x7F800000u : (exponent + 112u) << 23;
    return std::bit_cast<float>(sign | wide | fraction << 13);
  }
};

template <class T>
inline constexpr DType kDType = DType::f32;
template <>
inline constexpr DType kDType<double> = DType::f64;
template <>
inline constexpr DType kDType<int32_t> = DType::i32;
template <>
inline constexpr DType kDType<BFloat16> = DType::bf16;
template <>
inline constexpr DType kDType<Float16> = DType::f16;

}  // namespace heed
