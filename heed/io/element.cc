// SPDX-License-Identifier: Apache-2.0
#include "heed/io/element.h"

#include <algorithm>
#include <cstring>

#include "heed/base/error.h"

namespace heed::io {
namespace {

struct ElementInfo {
  const char* name;
  size_t size;
};

// In the order of ElementType.
constexpr ElementInfo kElements[] = {{"BOOL", 1},    {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                                     {"F8_E8M0", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},     {"BF16", 2},
                                     {"I32", 4},     {"U32", 4}, {"F32", 4}, {"C64", 8},     {"F64", 8},
                                     {"I64", 8},     {"U64", 8}};

const ElementInfo& info_of(ElementType type) { return kElements[static_cast<size_t>(type)]; }

template <class From, class To>
std::vector<To> convert_from(std::span<const std::byte> bytes) {
  std::vector<To> values(bytes.size() / sizeof(From));
  for (size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    if constexpr (std::is_arithmetic_v<From>) {
      values[i] = static_cast<To>(value);
    } else {
      values[i] = static_cast<float>(value);
    }
  }
  return values;
}

}  // namespace

const char* name_of(ElementType type) { return info_of(type).name; }

std::optional<ElementType> element_type_named(std::string_view name) {
  const auto found = std::ranges::find(kElements, name, &ElementInfo::name);
  if (found == std::end(kElements)) return std::nullopt;
  return static_cast<ElementType>(found - std::begin(kElements));
}

size_t size_of(ElementType type) { return info_of(type).size; }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<uint64_t> byte_count(const Shape& shape, ElementType type) {
  int64_t bytes = static_cast<int64_t>(size_of(type));
  bool empty = false;
  for (int64_t extent : shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes)) return std::nullopt;
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

template <class T>
std::vector<T> convert(ElementType type, std::span<const std::byte> bytes) {
  switch (type) {
    case ElementType::boolean:
    case ElementType::u8:
      return convert_from<uint8_t, T>(bytes);
    case ElementType::i8:
      return convert_from<int8_t, T>(bytes);
    case ElementType::i16:
      return convert_from<int16_t, T>(bytes);
    case ElementType::u16:
      return convert_from<uint16_t, T>(bytes);
    case ElementType::f16:
      return convert_from<Float16, T>(bytes);
    case ElementType::bf16:
      return convert_from<BFloat16, T>(bytes);
    case ElementType::i32:
      return convert_from<int32_t, T>(bytes);
    case ElementType::u32:
      return convert_from<uint32_t, T>(bytes);
    case ElementType::f32:
      return convert_from<float, T>(bytes);
    case ElementType::f64:
      return convert_from<double, T>(bytes);
    case ElementType::i64:
      return convert_from<int64_t, T>(bytes);
    case ElementType::u64:
      return convert_from<uint64_t, T>(bytes);
    case ElementType::f8_e5m2:
    case ElementType::f8_e4m3:
    case ElementType::f8_e8m0:
    case ElementType::c64:
      break;
  }
  throw Error(std::string("convert: elements are ") + name_of(type) +
              ", expected integers, booleans, or real numbers of 16 bits or more");
}

template std::vector<float> convert(ElementType, std::span<const std::byte>);
template std::vector<double> convert(ElementType, std::span<const std::byte>);

}  // namespace heed::io
