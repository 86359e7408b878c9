// SPDX-License-Identifier: Apache-2.0
#pragma once
// Heads side by side in the last dimension of a tensor, viewed as a dimension of their own, without a copy.
#include <type_traits>

#include "heed/base/view.h"
#include "heed/kernels/attention/kv_view.h"
#include "heed/tensor/tensor.h"

namespace heed::ops {

// [B,T,H D] viewed as [B,H,T,D].
template <class T>
View<T, 4> by_heads(const Tensor& x, int64_t heads) {
  if (!x) return {};
  const View<T, 4> rows(x.data<std::remove_const_t<T>>(), {x.shape(0), x.shape(1), heads, x.shape(2) / heads});
  return rows.transposed(1, 2);
}

// The same, in f32, bf16 or f16.
inline kernels::KvView keys_by_heads(const Tensor& x, int64_t heads) {
  if (x.dtype() == DType::bf16) return by_heads<const BFloat16>(x, heads);
  if (x.dtype() == DType::f16) return by_heads<const Float16>(x, heads);
  return by_heads<const float>(x, heads);
}

}  // namespace heed::ops
