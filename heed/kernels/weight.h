// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weight: a matrix W [O,I] as a product x W^T reads it, in f32, bf16 or f16: as it is stored, or packed once into
// panels of 16 outputs, contiguous in the order in which they are read. It borrows either; PackedWeight owns its
// panels.
//
// In int8 it is packed only: W[o,i] is q[o,i] scale[o] with an integer |q| <= 127 and a scale for each output, the
// largest |W[o,i]| / 127, rounded up to 16 significant bits. Every q scale is a number of f32 then, exactly, so that
// what was rounded once, and is packed again, stays as it is. An output of numbers below 2^-100 counts as zero, one
// with NaN or infinity has the scale NaN. products: product_int8.h.
// Not here: gradients. A matrix that is being trained is a View, and is packed again when it has changed.
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/base/export.h"
#include "heed/base/half.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"

namespace heed::kernels {

class Weight {
 public:
  // Outputs that a panel holds: panel p is [I][16], the entry (i, place(j)) is W[16 p + j, i], zero from O on.
  static constexpr int64_t kPanel = 16;
  // The column of output j: in order, but for bf16, where outputs j and j + 8 are the halves of one 32-bit word.
  static constexpr int64_t place(DType dtype, int64_t j) {
    constexpr int64_t kHalf = kPanel / 2;
    return dtype == DType::bf16 ? j % kHalf * 2 + j / kHalf : j;
  }

  // In int8, four inputs of an output stand side by side: a panel is [padded I / 4][16][4], zero from I on.
  static constexpr int64_t kInner = 4;
  static constexpr int64_t padded_inputs(int64_t inputs) { return (inputs + kInner - 1) / kInner * kInner; }
  // Sums of that many products of 8 bits fit into 32 bits.
  static constexpr int64_t kMostInt8Inputs = 1 << 17;

  Weight() = default;
  // w [O,I], of which one stride is 1: a matrix stored as [I,O] is View(data, {I, O}).transposed(0, 1).
  Weight(const View<const float, 2>& w) : Weight(w, DType::f32) {}      // NOLINT(google-explicit-constructor)
  Weight(const View<float, 2>& w) : Weight(w, DType::f32) {}            // NOLINT(google-explicit-constructor)
  Weight(const View<const BFloat16, 2>& w) : Weight(w, DType::bf16) {}  // NOLINT(google-explicit-constructor)
  Weight(const View<BFloat16, 2>& w) : Weight(w, DType::bf16) {}        // NOLINT(google-explicit-constructor)
  Weight(const View<const Float16, 2>& w) : Weight(w, DType::f16) {}    // NOLINT(google-explicit-constructor)
  Weight(const View<Float16, 2>& w) : Weight(w, DType::f16) {}          // NOLINT(google-explicit-constructor)

  // Panels that pack_weight made.
  static Weight from_panels(const void* panels, int64_t outputs, int64_t inputs, DType dtype) {
    Weight weight;
    weight.data_ = panels;
    weight.dtype_ = dtype;
    weight.packed_ = true;
    weight.shape_ = {outputs, inputs};
    return weight;
  }

  bool empty() const { return data_ == nullptr; }
  bool packed() const { return packed_; }
  DType dtype() const { return dtype_; }
  int64_t outputs() const { return shape_[0]; }
  int64_t inputs() const { return shape_[1]; }
  const Dims<2>& shape() const { return shape_; }

  // T must be the one of dtype().
  template <class T = float>
  View<const T, 2> view() const {
    assert(dtype_ == kDType<T> && !packed_);
    return {static_cast<const T*>(data_), shape_, strides_};
  }
  template <class T>
  const T* panel(int64_t p) const {
    assert(dtype_ == kDType<T> && packed_);
    return static_cast<const T*>(data_) + p * kPanel * padded_inputs();
  }
  int64_t panels() const { return (outputs() + kPanel - 1) / kPanel; }
  // What a panel has room for.
  int64_t padded_inputs() const { return dtype_ == DType::i8 ? padded_inputs(shape_[1]) : shape_[1]; }
  // Of one in int8, after its panels, for all their outputs: the scales; and -128 times the sum of an output's q, which
  // products with q + 128 start from.
  const float* scales() const { return reinterpret_cast<const float*>(panel<int8_t>(panels())); }
  const int32_t* starts() const { return reinterpret_cast<const int32_t*>(scales() + panels() * kPanel); }

 private:
  template <class T>
  Weight(const View<T, 2>& w, DType dtype) : data_(w.data()), dtype_(dtype), shape_(w.shape()), strides_(w.strides()) {}

  const void* data_ = nullptr;
  DType dtype_ = DType::f32;
  bool packed_ = false;
  Dims<2> shape_{}, strides_{};
};

HEED_API size_t packed_weight_bytes(int64_t outputs, int64_t inputs, DType dtype);
// Packs into the caller's memory, aligned as a Workspace is: for a matrix that changes and is packed again. `from` is
// not packed; elements are rounded to the nearest of the dtype. The result borrows `to`, not `from`.
HEED_API Weight pack_weight(const Weight& from, DType dtype, std::byte* to, Parallel&) noexcept;

// Rows of packed panels, as they were rounded (in int8: q times its scale): row i of `to` [n,I] is that of outputs[i].
HEED_API void unpack_outputs(const Weight& packed, std::span<const int32_t> outputs, const View<float, 2>& to,
                             Parallel&) noexcept;

// The same in int8, as the integers; scales are Weight's.
HEED_API void unpack_int8(const Weight& packed, const View<int8_t, 2>& to) noexcept;

// Panels that own their memory.
class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(const Weight& from, DType dtype, Parallel& parallel)
      : memory_(packed_weight_bytes(from.outputs(), from.inputs(), dtype)),
        weight_(pack_weight(from, dtype, memory_.data(), parallel)) {}

  operator const Weight&() const { return weight_; }  // NOLINT(google-explicit-constructor)
  const Weight& weight() const { return weight_; }
  std::span<const std::byte> panels() const { return {memory_.data(), memory_.bytes()}; }

 private:
  Workspace memory_;
  Weight weight_;
};

}  // namespace heed::kernels
