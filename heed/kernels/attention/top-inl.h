// SPDX-License-Identifier: Apache-2.0
// The top-k keys of each query, updated with each key block: K sorted vectors of scores and of keys, queries in lanes.
#if defined(HEED_KERNELS_ATTENTION_TOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_TOP_INL_H_
#undef HEED_KERNELS_ATTENTION_TOP_INL_H_
#else
#define HEED_KERNELS_ATTENTION_TOP_INL_H_
#endif

#include <limits>

#include "heed/kernels/attention/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// [rank][query] of a tile. Keys are kept as floats, which hold them exactly.
struct TopKeys {
  float *scores, *keys;
  int64_t count;

  void clear(F d) const {
    for (int64_t i = 0; i < count * kTile; i += kLanes) {
      hn::Store(hn::Set(d, -std::numeric_limits<float>::infinity()), d, scores + i);
      hn::Store(hn::Set(d, -1.0f), d, keys + i);
    }
  }

  // Inserts the score of one key for each lane of vector n. Of equals the first stays first, and NaN is not inserted.
  // The scores are sorted: rank i becomes the median of itself, rank i - 1 and the new score, so that no rank depends
  // on another's result. Count: the number of ranks as a constant, or 0.
  template <int64_t Count>
  HWY_INLINE void insert(F d, V score, int64_t key, int64_t n) const {
    const int64_t ranks = Count > 0 ? Count : count;
    const V of = hn::Set(d, static_cast<float>(key));
    float *s = scores + n, *k = keys + n;
    V below_score = hn::Load(d, s + (ranks - 1) * kTile), below_key = hn::Load(d, k + (ranks - 1) * kTile);
    auto larger = hn::Gt(score, below_score);
    score = hn::IfThenElse(larger, score, hn::Set(d, -std::numeric_limits<float>::infinity()));
#pragma GCC unroll 8
    for (int64_t i = ranks - 1; i > 0; --i) {
      const V above_score = hn::Load(d, s + (i - 1) * kTile), above_key = hn::Load(d, k + (i - 1) * kTile);
      const auto larger_above = hn::Gt(score, above_score);
      hn::Store(hn::Max(below_score, hn::Min(score, above_score)), d, s + i * kTile);
      hn::Store(hn::IfThenElse(larger, hn::IfThenElse(larger_above, above_key, of), below_key), d, k + i * kTile);
      below_score = above_score;
      below_key = above_key;
      larger = larger_above;
    }
    hn::Store(hn::Max(below_score, score), d, s);
    hn::Store(hn::IfThenElse(larger, of, below_key), d, k);
  }

  // Scores become weights 2^(score - max) / sum, and 0 where the sum is.
  void weigh(F d, const float* max, const float* sum) const {
    for (int64_t i = 0; i < count * kTile; i += kLanes) {
      const V total = hn::Load(d, sum + i % kTile);
      const V power = exp2(d, hn::Sub(hn::Load(d, scores + i), hn::Load(d, max + i % kTile)));
      hn::Store(hn::IfThenZeroElse(hn::Eq(total, hn::Zero(d)), hn::Div(power, total)), d, scores + i);
    }
  }

  // Rows of S^T, from key `first` on. Of every 32 rows, those in which some query may have found a larger score are
  // listed first, without branches: they could not be predicted.
  template <int NV>
  HWY_INLINE void add_rows(F d, const float* rows, int64_t first, int64_t n_rows) const {
    count == 8 ? add_rows<NV, 8>(d, rows, first, n_rows) : add_rows<NV, 0>(d, rows, first, n_rows);
  }

 private:
  template <int NV, int64_t Count>
  HWY_INLINE void add_rows(F d, const float* rows, int64_t first, int64_t n_rows) const {
    constexpr int64_t kRun = 32;
    for (int64_t begin = 0; begin < n_rows; begin += kRun) {
      const int64_t end = std::min(n_rows, begin + kRun);
      for (int64_t n = 0; n < NV * kLanes; n += kLanes) {
        const V least = hn::Load(d, scores + (count - 1) * kTile + n);
        int64_t found[kRun], n_found = 0;
        for (int64_t i = begin; i < end; ++i) {
          found[n_found] = i;
          n_found += hn::AllFalse(d, hn::Gt(hn::Load(d, rows + i * kTile + n), least)) ? 0 : 1;
        }
        for (int64_t j = 0; j < n_found; ++j) {
          insert<Count>(d, hn::Load(d, rows + found[j] * kTile + n), first + found[j], n);
        }
      }
    }
  }
};

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
