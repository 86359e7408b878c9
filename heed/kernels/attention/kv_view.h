// SPDX-License-Identifier: Apache-2.0
#pragma once
// KvView: keys or values as attention reads them, [B,Hk,S,D], in f32, bf16 or f16: strided, or paged through a block
// table. KV caches, beams and paged memory all come through this one type: a kernel asks it for runs of rows and never
// assumes how they are stored.
#include <algorithm>
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

  // Paged: blocks of n rows in any order in pool [blocks,Hk,n,D], and a block table [B, at least S / n] whose entry
  // (b, i) is the block that holds rows [i n, (i + 1) n) of batch b. Both are borrowed. A plan checks the entries it is
  // given; a later call may change them, to other blocks of the pool.
  template <class T>
  static KvView paged(const View<T, 4>& pool, const View<const int32_t, 2>& table, int64_t S) {
    KvView kv(pool);
    kv.blocks_ = pool.shape(0);
    kv.block_ = pool.shape(2);
    kv.table_ = table;
    kv.shape_ = {table.shape(0), pool.shape(1), S, pool.shape(3)};
    return kv;
  }

  DType dtype() const { return dtype_; }
  const Dims<4>& shape() const { return shape_; }
  int64_t shape(size_t i) const { return shape_[i]; }
  const Dims<4>& strides() const { return strides_; }  // [0] is that of a batch, or of a block where paged
  bool empty() const { return data_ == nullptr; }
  const void* data() const { return data_; }

  bool is_paged() const { return !table_.empty(); }
  int64_t pool_blocks() const { return blocks_; }
  int64_t block_rows() const { return block_; }
  const View<const int32_t, 2>& table() const { return table_; }

  // The rows as a strided view, in the type they are stored in; not where paged.
  template <class T = float>
  View<const T, 4> rows() const {
    assert(dtype_ == kDType<T> && !is_paged());
    return {static_cast<const T*>(data_), shape_, strides_};
  }
  // Row s of a head; T is the type of dtype(). The rows after it follow at a stride of strides()[2], for run() rows.
  template <class T = float>
  const T* row(int64_t b, int64_t h, int64_t s) const {
    assert(dtype_ == kDType<T>);
    const int64_t outer = is_paged() ? table_(b, s / block_) : b, inner = is_paged() ? s % block_ : s;
    return static_cast<const T*>(data_) + outer * strides_[0] + h * strides_[1] + inner * strides_[2];
  }
  // Of `count` rows from s on, how many follow each other at that stride: up to the end of the block where paged.
  int64_t run(int64_t s, int64_t count) const { return is_paged() ? std::min(count, block_ - s % block_) : count; }

 private:
  template <class T>
  KvView(const View<T, 4>& rows, DType dtype)
      : data_(rows.data()), dtype_(dtype), shape_(rows.shape()), strides_(rows.strides()) {}

  const void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Dims<4> shape_{}, strides_{};
  int64_t blocks_ = 0, block_ = 0;
  View<const int32_t, 2> table_{};
};

}  // namespace heed::kernels
