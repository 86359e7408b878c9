// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/embedding.h"

#include <algorithm>
#include <cassert>

#include "heed/kernels/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/embedding.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/rows-inl.h"

#ifndef HEED_KERNELS_EMBEDDING_CC_
#define HEED_KERNELS_EMBEDDING_CC_
namespace heed::kernels {

// The arguments of embedding_backward.
struct EmbeddingGradient {
  View<const int32_t, 1> ids;
  View<const float, 2> dy;
  float factor;
  View<float, 2> dtable;
};

// Ids that leave `remainder` when divided by `classes`.
struct IdClass {
  int32_t classes, remainder;
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

void embed_row(const float* row, float factor, float* y, int64_t n) {
  if (factor == 1) {
    std::copy_n(row, n, y);
  } else {
    scale_row(F(), row, factor, y, n);
  }
}

// The ids of one class, in order of the tokens: one part of the columns of their rows.
void add_embedded_rows(const EmbeddingGradient& call, IdClass ids, int64_t begin, int64_t columns) {
  for (int64_t n = 0; n < call.ids.shape(0); ++n) {
    const int32_t id = call.ids(n);
    assert(id >= 0 && id < call.dtable.shape(0));
    if (id % ids.classes != ids.remainder) continue;
    add_scaled_row(F(), call.dy.at(n, begin), call.factor, call.dtable.at(id, begin), columns);
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(embed_row);
HWY_EXPORT(add_embedded_rows);

void embedding_forward(View<const float, 2> table, View<const int32_t, 1> ids, double factor, View<float, 2> y,
                       Parallel& parallel) noexcept {
  assert(y.shape(0) == ids.shape(0) && y.shape(1) == table.shape(1));
  for_each_row(y.shape(), parallel, [&](int64_t n) {
    assert(ids(n) >= 0 && ids(n) < table.shape(0));
    HWY_DYNAMIC_DISPATCH(embed_row)(table.at(ids(n)), static_cast<float>(factor), y.at(n), y.shape(1));
  });
}

void embedding_backward(View<const int32_t, 1> ids, View<const float, 2> dy, double factor, View<float, 2> dtable,
                        Parallel& parallel) noexcept {
  assert(dy.shape(0) == ids.shape(0) && dy.shape(1) == dtable.shape(1));
  // A task owns a class of ids and some columns of their rows, and goes through all tokens in order.
  constexpr int32_t kClasses = 8;
  constexpr int64_t kColumns = 256;
  const int64_t width = dy.shape(1), pieces = (width + kColumns - 1) / kColumns;
  const EmbeddingGradient call{ids, dy, static_cast<float>(factor), dtable};
  parallel.for_each(kClasses * pieces, [&](int64_t task, int) {
    const int64_t begin = task % pieces * kColumns;
    HWY_DYNAMIC_DISPATCH(add_embedded_rows)
    (call, IdClass{kClasses, static_cast<int32_t>(task / pieces)}, begin, std::min(kColumns, width - begin));
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
