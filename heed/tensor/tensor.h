// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor: an owning, contiguous, row-major array of up to four dimensions, in f32, f64 or i32, or stored in 16 bits
// (bf16, f16). A handle: copies share the numbers, and a const handle does not make them const. Kernels see it as
// Views; what it means to compute with one is in ops/. Ops compute in f32 and f64: 16 bits are for caches and weights,
// and an op throws Error for them unless its header says that it reads them.
#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/half.h"
#include "heed/base/view.h"

namespace heed {

// The extents of a tensor, of 0 to 4 dimensions.
class HEED_API Shape {
 public:
  static constexpr size_t kMaxRank = 4;
  static constexpr int64_t kMaxSize = int64_t{1} << 58;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);
  template <size_t Rank>
  Shape(const Dims<Rank>& dims) : Shape(std::span(dims)) {}  // NOLINT(google-explicit-constructor)
  explicit Shape(std::span<const int64_t> extents);

  size_t rank() const { return rank_; }
  // Negative: from the end.
  int64_t operator[](int i) const { return extents_[index(i)]; }
  int64_t size() const;  // numbers in it, at most kMaxSize
  bool operator==(const Shape& other) const = default;
  // The same with one extent changed.
  Shape with(int i, int64_t extent) const;
  template <size_t Rank>
  Dims<Rank> dims() const {
    assert(rank_ == Rank);
    Dims<Rank> d;
    for (size_t i = 0; i < Rank; ++i) d[i] = extents_[i];
    return d;
  }

 private:
  void check() const;
  size_t index(int i) const {
    const size_t at = i < 0 ? rank_ - static_cast<size_t>(-i) : static_cast<size_t>(i);
    assert(at < rank_);
    return at;
  }
  std::array<int64_t, kMaxRank> extents_{};
  size_t rank_ = 0;
};

HEED_API std::string to_string(const Shape&);  // "[2, 8, 16]"

// A shape, a dtype, and shared memory.
class HEED_API Tensor {
 public:
  Tensor() = default;  // empty: no numbers, 'not there'

  static Tensor uninitialised(const Shape&, DType = DType::f32);
  static Tensor zeros(const Shape&, DType = DType::f32);
  static Tensor full(const Shape&, double value, DType = DType::f32);
  static Tensor of(const Shape&, std::span<const float>);
  static Tensor of(const Shape&, std::span<const double>);
  static Tensor of(const Shape&, std::span<const int32_t>);
  static Tensor of(const Shape&, std::span<const BFloat16>);
  static Tensor of(const Shape&, std::span<const Float16>);
  static Tensor like(const Tensor& other) { return uninitialised(other.shape(), other.dtype()); }
  static Tensor zeros_like(const Tensor& other) { return zeros(other.shape(), other.dtype()); }

  explicit operator bool() const { return memory_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int64_t shape(int i) const { return shape_[i]; }
  DType dtype() const { return dtype_; }
  int64_t size() const { return memory_ ? shape_.size() : 0; }
  size_t bytes() const;

  template <class T>
  T* data() const {
    assert(dtype_ == kDType<T>);
    return reinterpret_cast<T*>(memory_.get() + offset_);
  }
  std::byte* raw() const { return memory_ ? memory_.get() + offset_ : nullptr; }
  template <class T>
  std::span<T> span() const {
    return {data<T>(), static_cast<size_t>(size())};
  }
  // All of it as a view of that rank: leading dimensions are flattened into one, or filled up with 1.
  template <class T, size_t Rank>
  View<T, Rank> view() const;

  // The same numbers under another shape of the same size.
  Tensor reshaped(const Shape&) const;
  // Entries [begin, begin + count) of the first dimension, sharing the numbers.
  Tensor slice(int64_t begin, int64_t count) const;
  Tensor clone() const;
  // A copy, between f32, f64, bf16 and f16: each number rounded once, to the nearest, ties to even.
  Tensor converted(DType) const;
  // Whether this is the only handle to its numbers.
  bool sole() const { return memory_.use_count() == 1; }
  void fill(double value) const;
  void copy_from(const Tensor&) const;  // of the same shape and dtype

  double item() const;  // of a tensor of one number
  std::vector<double> to_doubles() const;

 private:
  std::shared_ptr<std::byte> memory_;
  size_t offset_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
};

// body(float{}) or body(double{}), by the dtype; throws Error, which begins with `what`, for any other.
template <class Body>
decltype(auto) with_float(const char* what, DType dtype, Body&& body);

// ---- implementation of templates ----

[[noreturn]] HEED_API void fail_dtype(const char* what, DType dtype);

template <class Body>
decltype(auto) with_float(const char* what, DType dtype, Body&& body) {
  if (dtype == DType::f32) return body(float{});
  if (dtype == DType::f64) return body(double{});
  fail_dtype(what, dtype);
}

template <class T, size_t Rank>
View<T, Rank> Tensor::view() const {
  if (!memory_) return {};
  Dims<Rank> dims;
  dims.fill(1);
  const size_t rank = shape_.rank();
  for (size_t i = 0; i < rank; ++i) {
    const size_t from_end = rank - 1 - i, to = from_end < Rank ? Rank - 1 - from_end : 0;
    dims[to] *= shape_[static_cast<int>(i)];
  }
  return {data<std::remove_const_t<T>>(), dims};
}

}  // namespace heed
