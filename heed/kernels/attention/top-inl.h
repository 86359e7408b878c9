// The K strongest keys of each query, kept on the way through the key blocks: K sorted vectors of scores and of keys, a
// query a lane.
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

  // A score of one key for each lane of vector n takes its place; from there on, the others move down. Equals come
  // after those that were there, and NaN never comes in. The scores are sorted: where this one is larger than rank i -
  // 1, rank i gets what was there, so that no rank waits for another.
  HWY_INLINE void insert(F d, V score, int64_t key, int64_t n) const {
    const V of = hn::Set(d, static_cast<float>(key));
    float *s = scores + n, *k = keys + n;
    V below_score = hn::Load(d, s + (count - 1) * kTile), below_key = hn::Load(d, k + (count - 1) * kTile);
    auto larger = hn::Gt(score, below_score);
    for (int64_t i = count - 1; i > 0; --i) {
      const V above_score = hn::Load(d, s + (i - 1) * kTile), above_key = hn::Load(d, k + (i - 1) * kTile);
      const auto larger_above = hn::Gt(score, above_score);
      hn::Store(hn::IfThenElse(larger, hn::IfThenElse(larger_above, above_score, score), below_score), d,
                s + i * kTile);
      hn::Store(hn::IfThenElse(larger, hn::IfThenElse(larger_above, above_key, of), below_key), d, k + i * kTile);
      below_score = above_score;
      below_key = above_key;
      larger = larger_above;
    }
    hn::Store(hn::IfThenElse(larger, score, below_score), d, s);
    hn::Store(hn::IfThenElse(larger, of, below_key), d, k);
  }

  // Rows of S^T, from key `first` on.
  template <int NV>
  HWY_INLINE void add_rows(F d, const float* rows, int64_t first, int64_t n_rows) const {
    const float* least = scores + (count - 1) * kTile;
    for (int64_t i = 0; i < n_rows; ++i) {
      for (int64_t n = 0; n < NV * kLanes; n += kLanes) {
        const V score = hn::Load(d, rows + i * kTile + n);
        if (!hn::AllFalse(d, hn::Gt(score, hn::Load(d, least + n)))) insert(d, score, first + i, n);
      }
    }
  }
};

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
