// SPDX-License-Identifier: Apache-2.0
#include "heed/tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "heed/base/allocator.h"
#include "heed/base/error.h"
#include "heed/tensor/convert.h"

namespace heed {
namespace {

template <class T>
Tensor filled_from(const Shape& shape, std::span<const T> numbers) {
  if (static_cast<int64_t>(numbers.size()) != shape.size()) {
    throw Error("tensor: " + std::to_string(numbers.size()) + " numbers came for shape " + to_string(shape) +
                ", expected " + std::to_string(shape.size()));
  }
  const Tensor t = Tensor::uninitialised(shape, kDType<T>);
  std::copy(numbers.begin(), numbers.end(), t.data<T>());
  return t;
}

void check_floating(DType dtype) {
  if (is_floating(dtype)) return;
  throw Error(std::string("tensor: a tensor in ") + name_of(dtype) + " came, expected f32, f64, bf16 or f16");
}

}  // namespace

Shape::Shape(std::initializer_list<int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) : rank_(extents.size()) {
  if (rank_ > kMaxRank) {
    throw Error("tensor: a shape of " + std::to_string(rank_) + " dimensions came, expected at most " +
                std::to_string(kMaxRank));
  }
  std::copy(extents.begin(), extents.end(), extents_.begin());
  check();
}

// Extents of 0 are left out of the product, so that strides fit too.
void Shape::check() const {
  int64_t size = 1;
  for (size_t i = 0; i < rank_; ++i) {
    const int64_t extent = extents_[i];
    if (extent < 0) throw Error("tensor: shape " + to_string(*this) + " came, expected no negative extent");
    if (extent == 0) continue;
    if (size > kMaxSize / extent) {
      throw Error("tensor: shape " + to_string(*this) + " came, expected at most 2^58 numbers");
    }
    size *= extent;
  }
}

int64_t Shape::size() const {
  int64_t n = 1;
  for (size_t i = 0; i < rank_; ++i) n *= extents_[i];
  return n;
}

Shape Shape::with(int i, int64_t extent) const {
  Shape other = *this;
  other.extents_[index(i)] = extent;
  other.check();
  return other;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.rank(); ++i) {
    text += (i ? ", " : "") + std::to_string(shape[static_cast<int>(i)]);
  }
  return text + "]";
}

Tensor Tensor::uninitialised(const Shape& shape, DType dtype) {
  Tensor t;
  t.shape_ = shape;
  t.dtype_ = dtype;
  const size_t bytes = static_cast<size_t>(shape.size()) * element_bytes(dtype);
  auto* memory = static_cast<std::byte*>(cached_allocate(bytes));
  t.memory_ = std::shared_ptr<std::byte>(
      memory, [bytes](std::byte* p) { cached_free(p, bytes); }, CachedAllocator<std::byte>());
  return t;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  const Tensor t = uninitialised(shape, dtype);
  std::memset(t.raw(), 0, t.bytes());
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  const Tensor t = uninitialised(shape, dtype);
  t.fill(value);
  return t;
}

Tensor Tensor::of(const Shape& shape, std::span<const float> numbers) { return filled_from(shape, numbers); }
Tensor Tensor::of(const Shape& shape, std::span<const double> numbers) { return filled_from(shape, numbers); }
Tensor Tensor::of(const Shape& shape, std::span<const int32_t> numbers) { return filled_from(shape, numbers); }
Tensor Tensor::of(const Shape& shape, std::span<const BFloat16> numbers) { return filled_from(shape, numbers); }
Tensor Tensor::of(const Shape& shape, std::span<const Float16> numbers) { return filled_from(shape, numbers); }

size_t Tensor::bytes() const { return static_cast<size_t>(size()) * element_bytes(dtype_); }

Tensor Tensor::reshaped(const Shape& shape) const {
  if (!memory_) throw Error("tensor: an empty tensor came, expected one to see as " + to_string(shape));
  if (shape.size() != size()) {
    throw Error("tensor: shape " + to_string(shape_) + " cannot become " + to_string(shape) + ", expected " +
                std::to_string(size()) + " numbers");
  }
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::slice(int64_t begin, int64_t count) const {
  if (shape_.rank() == 0 || begin < 0 || count < 0 || begin > shape_[0] || count > shape_[0] - begin) {
    throw Error("tensor: " + std::to_string(count) + " entries from " + std::to_string(begin) + " on came for shape " +
                to_string(shape_) + ", expected them within its first dimension");
  }
  Tensor t = *this;
  t.shape_ = shape_.with(0, count);
  const int64_t row = shape_[0] == 0 ? 0 : size() / shape_[0];
  t.offset_ += static_cast<size_t>(begin * row) * element_bytes(dtype_);
  return t;
}

Tensor Tensor::clone() const {
  if (!memory_) return {};
  const Tensor t = like(*this);
  std::memcpy(t.raw(), raw(), bytes());
  return t;
}

Tensor Tensor::converted(DType dtype) const {
  if (!memory_ || dtype == dtype_) return clone();
  check_floating(dtype_);
  check_floating(dtype);
  const Tensor t = uninitialised(shape_, dtype);
  convert_numbers(raw(), dtype_, t.raw(), dtype, size());
  return t;
}

void Tensor::fill(double value) const {
  switch (dtype_) {
    case DType::f32:
      std::fill_n(data<float>(), size(), static_cast<float>(value));
      break;
    case DType::f64:
      std::fill_n(data<double>(), size(), value);
      break;
    case DType::i32:
      std::fill_n(data<int32_t>(), size(), static_cast<int32_t>(value));
      break;
    case DType::i8:
      std::fill_n(data<int8_t>(), size(), static_cast<int8_t>(value));
      break;
    case DType::bf16:
      std::fill_n(data<BFloat16>(), size(), BFloat16::from(value));
      break;
    case DType::f16:
      std::fill_n(data<Float16>(), size(), Float16::from(value));
      break;
  }
}

void Tensor::copy_from(const Tensor& other) const {
  if (memory_ && !other) {
    throw Error("tensor: an empty tensor came, expected shape " + to_string(shape_) + " in " + name_of(dtype_));
  }
  if (other.shape() != shape_ || other.dtype() != dtype_) {
    throw Error("tensor: shape " + to_string(other.shape()) + " in " + name_of(other.dtype()) + " came, expected " +
                to_string(shape_) + " in " + name_of(dtype_));
  }
  if (memory_) std::memmove(raw(), other.raw(), bytes());
}

double Tensor::item() const {
  if (!memory_) throw Error("tensor: an empty tensor came, expected a single number");
  if (size() != 1) throw Error("tensor: shape " + to_string(shape_) + " came, expected a single number");
  if (dtype_ == DType::i32) return *data<int32_t>();
  if (dtype_ == DType::i8) return *data<int8_t>();
  double number = 0;
  convert_numbers(raw(), dtype_, reinterpret_cast<std::byte*>(&number), DType::f64, 1);
  return number;
}

std::vector<double> Tensor::to_doubles() const {
  if (!memory_) return {};
  if (dtype_ == DType::i32) return {data<int32_t>(), data<int32_t>() + size()};
  if (dtype_ == DType::i8) return {data<int8_t>(), data<int8_t>() + size()};
  std::vector<double> numbers(static_cast<size_t>(size()));
  convert_numbers(raw(), dtype_, reinterpret_cast<std::byte*>(numbers.data()), DType::f64, size());
  return numbers;
}

void fail_dtype(const char* what, DType dtype) {
  throw Error(std::string(what) + ": a tensor in " + name_of(dtype) + " came, expected f32 or f64");
}

}  // namespace heed
