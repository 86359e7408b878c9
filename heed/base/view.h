// SPDX-License-Identifier: Apache-2.0
#pragma once
// View<T, Rank>: a borrowed, strided, row-major-by-default array. It owns nothing and is passed by value.
// Strides count elements, not bytes. A view whose data is null is empty: in a gradient it means 'not wanted'.
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace heed {

template <size_t Rank>
using Dims = std::array<int64_t, Rank>;

template <size_t Rank>
constexpr Dims<Rank> row_major(const Dims<Rank>& shape) {
  Dims<Rank> strides{};
  int64_t step = 1;
  for (size_t i = Rank; i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

template <size_t Rank>
constexpr int64_t element_count(const Dims<Rank>& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

// "[2, 8, 16, 64]", as error messages write a shape.
template <size_t Rank>
std::string to_string(const Dims<Rank>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < Rank; ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

template <class T, size_t Rank>
class View {
 public:
  constexpr View() = default;
  constexpr View(T* data, const Dims<Rank>& shape) : View(data, shape, row_major(shape)) {}
  constexpr View(T* data, const Dims<Rank>& shape, const Dims<Rank>& strides)
      : data_(data), shape_(shape), strides_(strides) {}

  // View<float> converts to View<const float>.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T> && !std::is_same_v<U, T>>>
  constexpr View(const View<U, Rank>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data()), shape_(other.shape()), strides_(other.strides()) {}

  constexpr T* data() const { return data_; }
  constexpr const Dims<Rank>& shape() const { return shape_; }
  constexpr const Dims<Rank>& strides() const { return strides_; }
  constexpr int64_t shape(size_t i) const { return shape_[i]; }
  constexpr int64_t stride(size_t i) const { return strides_[i]; }
  constexpr int64_t size() const { return element_count(shape_); }
  constexpr bool empty() const { return data_ == nullptr; }
  constexpr explicit operator bool() const { return data_ != nullptr; }

  template <class... Index>
  constexpr T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank);
    return *at(index...);
  }

  // The address of an element; trailing indices may be left out: v.at(b, h) is where row 0 of that head begins.
  template <class... Index>
  constexpr T* at(Index... index) const {
    static_assert(sizeof...(Index) <= Rank);
    T* p = data_;
    size_t i = 0;
    ((p += static_cast<int64_t>(index) * strides_[i++]), ...);
    return p;
  }

  // The same elements with two dimensions swapped: [B,T,H,D] seen as [B,H,T,D].
  constexpr View transposed(size_t i, size_t j) const {
    View v = *this;
    std::swap(v.shape_[i], v.shape_[j]);
    std::swap(v.strides_[i], v.strides_[j]);
    return v;
  }

  // `count` entries of dimension `dim` from `begin` on.
  constexpr View slice(size_t dim, int64_t begin, int64_t count) const {
    assert(begin >= 0 && count >= 0 && begin + count <= shape_[dim]);
    View v = *this;
    if (v.data_) v.data_ += begin * strides_[dim];
    v.shape_[dim] = count;
    return v;
  }

 private:
  T* data_ = nullptr;
  Dims<Rank> shape_{};
  Dims<Rank> strides_{};
};

}  // namespace heed
