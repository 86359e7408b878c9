// SPDX-License-Identifier: Apache-2.0
#include "heed/tensor/convert.h"

#include <cassert>
#include <cstring>

namespace heed {
namespace {

template <class To, class From>
To converted(From x) {
  if constexpr (is_half(kDType<From>)) {
    return converted<To>(static_cast<float>(x));  // exact
  } else if constexpr (is_half(kDType<To>)) {
    return To::from(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void convert_all(const std::byte* from, std::byte* to, int64_t count) {
  const auto* in = reinterpret_cast<const From*>(from);
  auto* out = reinterpret_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) out[i] = converted<To>(in[i]);
}

// body(T{}) with the C++ type of a floating dtype.
template <class Body>
void with_floating(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32:
      return body(float{});
    case DType::f64:
      return body(double{});
    case DType::bf16:
      return body(BFloat16{});
    case DType::f16:
      return body(Float16{});
    case DType::i32:
    case DType::i8:
      break;
  }
  assert(false);
}

}  // namespace

void convert_numbers(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype, int64_t count) noexcept {
  if (from_dtype == to_dtype) {
    if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * element_bytes(from_dtype));
    return;
  }
  with_floating(from_dtype, [&](auto source) {
    with_floating(to_dtype, [&](auto target) { convert_all<decltype(source), decltype(target)>(from, to, count); });
  });
}

}  // namespace heed
