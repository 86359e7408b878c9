// SPDX-License-Identifier: Apache-2.0
// Loops over a row in vectors: maps, sums, maxima, with the ragged end taken care of. Compiled once for each SIMD
// target, as vec-inl.h is.
#if defined(HEED_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ROWS_INL_H_
#undef HEED_KERNELS_ROWS_INL_H_
#else
#define HEED_KERNELS_ROWS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "heed/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Lanes [0, left) to memory.
HWY_INLINE void store_part(F d, V v, float* p, int64_t left) {
  if (left >= kLanes) return hn::StoreU(v, d, p);
  HWY_ALIGN float part[kLanes];
  hn::Store(v, d, part);
  std::memcpy(p, part, static_cast<size_t>(left) * sizeof(float));
}

// body<N>(at, left): N vectors from element `at` on. `left` is kLanes, or less for the last vector, where N is 1.
// Four vectors at a time keep several chains of additions, or of a polynomial, under way.
template <class Body>
HWY_INLINE void for_vectors(int64_t n, const Body& body) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= n; at += 4 * kLanes) body.template operator()<4>(at, kLanes);
  for (; at < n; at += kLanes) body.template operator()<1>(at, std::min(kLanes, n - at));
}

template <int N>
HWY_INLINE void load_vectors(F d, const float* p, int64_t left, V (&v)[N]) {
  for (int i = 0; i < N; ++i) v[i] = load_part(d, p + i * kLanes, left);
}
template <int N>
HWY_INLINE void store_vectors(F d, const V (&v)[N], float* p, int64_t left) {
  for (int i = 0; i < N; ++i) store_part(d, v[i], p + i * kLanes, left);
}

// y = factor x; y may be x.
HWY_INLINE void scale_row(F d, const float* x, float factor, float* y, int64_t n) {
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N];
    load_vectors(d, x + at, left, v);
    for (V& value : v) value = hn::Mul(value, hn::Set(d, factor));
    store_vectors(d, v, y + at, left);
  });
}

// y += factor x
HWY_INLINE void add_scaled_row(F d, const float* x, float factor, float* y, int64_t n) {
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    V v[N], to[N];
    load_vectors(d, x + at, left, v);
    load_vectors(d, y + at, left, to);
    for (int i = 0; i < N; ++i) to[i] = hn::MulAdd(v[i], hn::Set(d, factor), to[i]);
    store_vectors(d, to, y + at, left);
  });
}

// Running sums of terms, in four vectors.
struct Sums {
  V v[4];

  explicit HWY_INLINE Sums(F d) : v{hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)} {}
  // Lanes from `left` on do not count.
  template <int N>
  HWY_INLINE void add(F d, const V (&terms)[N], int64_t left) {
    for (int i = 0; i < N; ++i) {
      const V term = left >= kLanes ? terms[i] : hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), terms[i]);
      v[i] = hn::Add(v[i], term);
    }
  }
  HWY_INLINE float total(F d) const {
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]))));
  }
};

// The largest of a row, -inf of none. Whether a NaN shows here is not said: it does in what is made of it.
HWY_INLINE float max_of(F d, const float* x, int64_t n) {
  const V low = hn::Set(d, -std::numeric_limits<float>::infinity());
  V max[4] = {low, low, low, low};
  for_vectors(n, [&]<int N>(int64_t at, int64_t left) HWY_ATTR {
    for (int i = 0; i < N; ++i) {
      const V v = load_part(d, x + at + i * kLanes, left);
      max[i] = hn::Max(max[i], left >= kLanes ? v : hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(left)), v, low));
    }
  });
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(max[0], max[1]), hn::Max(max[2], max[3]))));
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
