// SPDX-License-Identifier: Apache-2.0
#include "bench/vector_products.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/vector_products.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::bench::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;

// R rows, `apart` from each other, with two accumulators each.
template <int R>
HWY_INLINE void dot_rows(F d, const View<const float, 2>& rows, int64_t first, int64_t apart, const float* x,
                         float* y) {
  const int64_t n = rows.shape(1);
  V sum[R][2];
  const float* row[R];
  for (int r = 0; r < R; ++r) {
    sum[r][0] = sum[r][1] = hn::Zero(d);
    row[r] = rows.at(first + r * apart);
  }
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    for (int half = 0; half < 2; ++half) {
      const V factor = hn::LoadU(d, x + i + half * kLanes);
      for (int r = 0; r < R; ++r) {
        sum[r][half] = hn::MulAdd(factor, hn::LoadU(d, row[r] + i + half * kLanes), sum[r][half]);
      }
    }
  }
  for (; i < n; i += kLanes) {
    const V factor = load_part(d, x + i, n - i);
    for (int r = 0; r < R; ++r) sum[r][0] = hn::MulAdd(factor, load_part(d, row[r] + i, n - i), sum[r][0]);
  }
  for (int r = 0; r < R; ++r) y[first + r * apart] = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum[r][0], sum[r][1])));
}

// Four long streams from memory, not four neighbouring rows: the hardware prefetcher follows each.
void rows_times_vector(const View<const float, 2>& rows, const float* x, float* y) {
  const F d;
  const int64_t quarter = rows.shape(0) / 4;
  for (int64_t row = 0; row < quarter; ++row) dot_rows<4>(d, rows, row, quarter, x, y);
  for (int64_t row = 4 * quarter; row < rows.shape(0); ++row) dot_rows<1>(d, rows, row, 0, x, y);
}

// y += x[0] row[0] + ... for R rows.
template <int R>
HWY_INLINE void add_rows(F d, const View<const float, 2>& rows, int64_t first, const float* x, float* y) {
  const int64_t n = rows.shape(1);
  V factor[R];
  for (int r = 0; r < R; ++r) factor[r] = hn::Set(d, x[first + r]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    V sum = hn::LoadU(d, y + i);
    for (int r = 0; r < R; ++r) sum = hn::MulAdd(factor[r], hn::LoadU(d, rows.at(first + r, i)), sum);
    hn::StoreU(sum, d, y + i);
  }
  for (; i < n; ++i) {
    for (int r = 0; r < R; ++r) y[i] += x[first + r] * rows(first + r, i);
  }
}

void vector_times_rows(const float* x, const View<const float, 2>& rows, float* y) {
  const F d;
  std::fill_n(y, rows.shape(1), 0.0f);
  int64_t row = 0;
  for (; row + 8 <= rows.shape(0); row += 8) add_rows<8>(d, rows, row, x, y);
  for (; row < rows.shape(0); ++row) add_rows<1>(d, rows, row, x, y);
}

}  // namespace
}  // namespace heed::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed::bench {

HWY_EXPORT(rows_times_vector);
HWY_EXPORT(vector_times_rows);

void rows_times_vector(const View<const float, 2>& rows, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(rows_times_vector)(rows, x, y);
}

void vector_times_rows(const float* x, const View<const float, 2>& rows, float* y) {
  HWY_DYNAMIC_DISPATCH(vector_times_rows)(x, rows, y);
}

}  // namespace heed::bench

#endif  // HWY_ONCE
