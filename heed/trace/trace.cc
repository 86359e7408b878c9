// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/trace.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/half.h"

namespace heed::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

std::string shown(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void check_numbers(std::span<const int64_t> shape, std::span<const float> numbers) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  if (count != std::ssize(numbers)) {
    throw Error("trace: " + std::to_string(numbers.size()) + " numbers came for shape " + shown(shape) + ", expected " +
                std::to_string(count));
  }
  for (const float one : numbers) {
    if (!std::isfinite(one)) {
      throw Error("trace: a number is " + std::string(std::isnan(one) ? "NaN" : "infinite") +
                  ", expected finite ones: the weights of the model are broken, or too large");
    }
  }
}

template <class T>
std::vector<std::byte> bytes_of_all(std::span<const T> numbers) {
  std::vector<std::byte> bytes(numbers.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> numbers_of(const Array& array) {
  std::vector<T> numbers(array.bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), array.bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

}  // namespace

int64_t bytes_of(Storage storage) { return storage == Storage::f16 ? 2 : storage == Storage::u8n ? 1 : 4; }

Array Array::f32(std::vector<int64_t> shape, std::span<const float> numbers) {
  check_numbers(shape, numbers);
  return {.shape = std::move(shape), .dtype = Storage::f32, .bytes = bytes_of_all(numbers)};
}

Array Array::f16(std::vector<int64_t> shape, std::span<const float> numbers) {
  check_numbers(shape, numbers);
  constexpr float kLargest = 65504;
  if (std::any_of(numbers.begin(), numbers.end(), [](float x) { return std::abs(x) > kLargest; })) {
    return f32(std::move(shape), numbers);
  }
  std::vector<uint16_t> halves;
  halves.reserve(numbers.size());
  for (const float x : numbers) halves.push_back(Float16::from(x).bits);
  return {.shape = std::move(shape), .dtype = Storage::f16, .bytes = bytes_of_all(std::span<const uint16_t>(halves))};
}

Array Array::u8n(std::vector<int64_t> shape, std::span<const float> numbers) {
  check_numbers(shape, numbers);
  float low = 0, high = 0;
  for (const float x : numbers) low = std::min(low, x), high = std::max(high, x);
  if (low == high) high = low + 1;
  std::vector<uint8_t> all;
  all.reserve(numbers.size());
  for (const float x : numbers) all.push_back(static_cast<uint8_t>(std::lround((x - low) / (high - low) * 255)));
  return {.shape = std::move(shape),
          .dtype = Storage::u8n,
          .low = double{low},
          .high = double{high},
          .bytes = bytes_of_all(std::span<const uint8_t>(all))};
}

Array Array::u32(std::vector<int64_t> shape, std::span<const uint32_t> numbers) {
  return {.shape = std::move(shape), .dtype = Storage::u32, .bytes = bytes_of_all(numbers)};
}

std::vector<float> Array::values() const {
  if (dtype == Storage::f32) return numbers_of<float>(*this);
  std::vector<float> all;
  if (dtype == Storage::f16) {
    for (const uint16_t bits : numbers_of<uint16_t>(*this)) all.push_back(static_cast<float>(Float16{bits}));
  } else if (dtype == Storage::u8n) {
    for (const uint8_t u : numbers_of<uint8_t>(*this))
      all.push_back(static_cast<float>(low + u / 255.0 * (high - low)));
  } else {
    throw Error("trace: an array is of keys (u32), expected numbers");
  }
  return all;
}

std::vector<uint32_t> Array::keys() const {
  if (dtype != Storage::u32) throw Error("trace: an array is of numbers, expected keys (u32)");
  return numbers_of<uint32_t>(*this);
}

bool Mask::sees(int64_t query, int64_t key) const {
  const int64_t at = query + offset;
  if (keys && key >= *keys) return false;
  if (type == MaskType::causal) return key <= at;
  if (type == MaskType::window) return (!left || key >= at - *left) && (!right || key <= at + *right);
  return true;
}

const Array& Trace::tensor(const Ref& ref) const {
  if (!ref) throw Error("trace: numbers were asked for that were not captured");
  const auto found = tensors.find(ref.name);
  if (found == tensors.end()) throw Error("trace: there is no tensor of the name that is referred to");
  return found->second;
}

const Sequence& Trace::sequence(const std::string& id) const {
  for (const Sequence& one : sequences) {
    if (one.id == id) return one;
  }
  throw Error("trace: there is no sequence of the name that is referred to");
}

}  // namespace heed::trace
