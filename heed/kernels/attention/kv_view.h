#pragma once
// KvView: keys or values as attention reads them, [B,Hk,S,D]: strided, in f32, bf16 or f16. Caches and beams come
// through this one type, so that a kernel asks it for blocks of rows and never assumes how they are stored. Not here
// yet: rows behind a table of blocks.
#include <cassert>

#include "heed/base/half.h"
#include "heed/base/view.h"

namespace heed::kernels {

class KvView {
 public:
  KvView() = default;
  KvView(const View<const float, 4>& rows) : KvView(rows, DType::f32) {}      // NOLINT(google-explicit-constructor)
  KvView(const View<float, 4>& rows) : KvView(rows, DType::f32) {}            // NOLINT(google-explicit-constructor)
  KvView(const View<const BFloat16, 4>& rows) : KvView(rows, DType::bf16) {}  // NOLINT(google-explicit-constructor)
  KvView(const View<BFloat16, 4>& rows) : KvView(rows, DType::bf16) {}        // NOLINT(google-explicit-constructor)
  KvView(const View<const Float16, 4>& rows) : KvView(rows, DType::f16) {}    // NOLINT(google-explicit-constructor)
  KvView(const View<Float16, 4>& rows) : KvView(rows, DType::f16) {}          // NOLINT(google-explicit-constructor)

  DType dtype() const { return dtype_; }
  const Dims<4>& shape() const { return shape_; }
  int64_t shape(size_t i) const { return shape_[i]; }
  const Dims<4>& strides() const { return strides_; }
  bool empty() const { return data_ == nullptr; }
  const void* data() const { return data_; }

  // The rows as what they are stored as: T must be the one of dtype().
  template <class T = float>
  View<const T, 4> rows() const {
    assert(dtype_ == kDType<T>);
    return {static_cast<const T*>(data_), shape_, strides_};
  }

 private:
  template <class T>
  KvView(const View<T, 4>& rows, DType dtype)
      : data_(rows.data()), dtype_(dtype), shape_(rows.shape()), strides_(rows.strides()) {}

  const void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Dims<4> shape_{}, strides_{};
};

}  // namespace heed::kernels
