// SPDX-License-Identifier: Apache-2.0
#pragma once
// The element types of safetensors and npy files, and shapes of any rank.
// Wider than heed::DType on purpose: a file with integers can be listed and read, though no kernel takes them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/half.h"

namespace heed::io {

// In the order by which safetensors are sorted, smallest first.
enum class ElementType : uint8_t {
  // clang-format off
  boolean, u8, i8, f8_e5m2, f8_e4m3, f8_e8m0, i16, u16, f16, bf16, i32, u32, f32, c64, f64, i64, u64
  // clang-format on
};

// As safetensors write it: "F32", "BOOL".
HEED_API const char* name_of(ElementType type);
HEED_API std::optional<ElementType> element_type_named(std::string_view name);
// Bytes of one element.
HEED_API size_t size_of(ElementType type);

template <class T>
consteval std::optional<ElementType> element_type_of() {
  using enum ElementType;
  if (std::is_same_v<T, bool>) return boolean;
  if (std::is_same_v<T, Float16>) return f16;
  if (std::is_same_v<T, BFloat16>) return bf16;
  if (std::is_same_v<T, float>) return f32;
  if (std::is_same_v<T, double>) return f64;
  if (std::is_same_v<T, uint8_t>) return u8;
  if (std::is_same_v<T, int8_t>) return i8;
  if (std::is_same_v<T, uint16_t>) return u16;
  if (std::is_same_v<T, int16_t>) return i16;
  if (std::is_same_v<T, uint32_t>) return u32;
  if (std::is_same_v<T, int32_t>) return i32;
  if (std::is_same_v<T, uint64_t>) return u64;
  if (std::is_same_v<T, int64_t>) return i64;
  return std::nullopt;
}
// The element type of a C++ type; a type that no file holds does not compile.
template <class T>
inline constexpr ElementType kElementType = element_type_of<T>().value();

using Shape = std::vector<int64_t>;

// NumPy's limit, and ours: more in a file is no array but an attack on memory.
inline constexpr size_t kMaxRank = 64;

// "[2, 3]", as error messages write it.
HEED_API std::string to_string(const Shape& shape);

// Bytes of an array, or nothing if that is beyond int64_t. Extents of zero count as one in that check, so that the
// strides of an empty array can be computed too.
HEED_API std::optional<uint64_t> byte_count(const Shape& shape, ElementType type);

// The values as T, float or double, each rounded to the nearest. Throws for the types of 8 bits and for complex
// numbers.
template <class T>
HEED_API std::vector<T> convert(ElementType type, std::span<const std::byte> bytes);
extern template std::vector<float> convert(ElementType, std::span<const std::byte>);
extern template std::vector<double> convert(ElementType, std::span<const std::byte>);

}  // namespace heed::io
