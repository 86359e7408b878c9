// SPDX-License-Identifier: Apache-2.0
// The additive score of a query and a key, sum_a w_a tanh(q_a + k_a), and its gradients. Its cost is one tanh for each
// pair and column; the loops keep several independent ones in flight.
#if defined(HEED_KERNELS_ATTENTION_ADDITIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_ADDITIVE_INL_H_
#undef HEED_KERNELS_ATTENTION_ADDITIVE_INL_H_
#else
#define HEED_KERNELS_ATTENTION_ADDITIVE_INL_H_
#endif

#include "heed/kernels/attention/tiles-inl.h"
#include "heed/kernels/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// How many of n vectors go through tanh together: more than two would leave too few registers to the accumulators.
constexpr int together(int n) { return n % 2 == 0 ? 2 : 1; }

// acc[r][n] = sum_c w[c] tanh(tile[c][n] + rows[r][c]), for R rows and NV vectors of a tile, as product_rows.
// The sum runs over c in order, so a score has the same bits whatever tile it was computed in.
template <int R, int NV>
HWY_INLINE void additive_rows(F d, Rows rows, int64_t columns, const float* HWY_RESTRICT tile,
                              const float* HWY_RESTRICT w, V (&acc)[R][NV]) {
  const float* HWY_RESTRICT data = rows.data;
  const int64_t stride = rows.stride;
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < NV; ++n) acc[r][n] = hn::Zero(d);
  }
  constexpr int kTogether = together(R * NV);
  for (int64_t c = 0; c < columns; ++c) {
    const V factor = hn::Set(d, w[c]);
    for (int i = 0; i < R * NV; i += kTogether) {
      V t[kTogether];
      for (int j = 0; j < kTogether; ++j) {
        const int r = (i + j) / NV, n = (i + j) % NV;
        t[j] = hn::Add(hn::Load(d, tile + c * kTile + n * kLanes), hn::Set(d, data[r * stride + c]));
      }
      tanh(d, t);
      for (int j = 0; j < kTogether; ++j) {
        V& sum = acc[(i + j) / NV][(i + j) % NV];
        sum = hn::MulAdd(factor, t[j], sum);
      }
    }
  }
}

// scores[r] = sum_a w[a] tanh(q[a] + rows[r][a]), the D columns in lanes: for a single query, whose keys may be stored
// in 16 bits. q and w are aligned and padded with zeros to whole vectors. A score has the same bits for every R.
template <int R, class T>
HWY_INLINE void additive_dot(F d, const float* HWY_RESTRICT q, const T* const (&rows)[R], const float* HWY_RESTRICT w,
                             int64_t D, float* HWY_RESTRICT scores) {
  constexpr int kTogether = together(R);
  V acc[R];
  for (int r = 0; r < R; ++r) acc[r] = hn::Zero(d);
  for (int64_t c = 0; c < D; c += kLanes) {
    const V x = hn::Load(d, q + c), factor = hn::Load(d, w + c);
    for (int r = 0; r < R; r += kTogether) {
      V t[kTogether];
      for (int j = 0; j < kTogether; ++j) t[j] = hn::Add(x, load_part(d, rows[r + j] + c, D - c));
      tanh(d, t);
      for (int j = 0; j < kTogether; ++j) acc[r + j] = hn::MulAdd(factor, t[j], acc[r + j]);
    }
  }
  for (int r = 0; r < R; ++r) scores[r] = hn::GetLane(hn::SumOfLanes(d, acc[r]));
}

// A tile of queries and some keys, for backward; columns are in lanes.
struct AdditivePairs {
  const float* q;  // [queries][width], aligned, padded with zeros to whole vectors
  int64_t queries;
  Rows k;
  int64_t keys, columns, width;
  const float* w;       // [width], aligned, padded with zeros
  const float* ds;      // [key][kTile]: the gradient of each score
  const float* hidden;  // [key][kTile], not zero: the pair is masked. Null: no pair is.
};

// What their gradients are accumulated into, aligned: with t = tanh(q + k),
//   dq[query] += sum_key ds w (1 - t^2);  dk[key] += sum_query ds w (1 - t^2);  dw += sum ds t
// In dw, lanes from `columns` on are written, and are meaningless.
struct AdditiveSums {
  float *dq, *dk;  // [queries][width], [keys][width]
  float* dw;       // [width]
};

// Accumulates them for one vector of columns, from c on, and Q queries from `query` on.
template <int Q, bool Careful>
HWY_INLINE void additive_gradients_of(F d, const AdditivePairs& pairs, int64_t query, int64_t c,
                                      const AdditiveSums& sums) {
  const float* HWY_RESTRICT q = pairs.q + query * pairs.width + c;
  float* HWY_RESTRICT dq_rows = sums.dq + query * pairs.width + c;
  V dq[Q], dw = hn::Load(d, sums.dw + c);
  const V w = hn::Load(d, pairs.w + c);
  for (int i = 0; i < Q; ++i) dq[i] = hn::Load(d, dq_rows + i * pairs.width);
  for (int64_t key = 0; key < pairs.keys; ++key) {
    const V k = load_part(d, pairs.k.row(key) + c, pairs.columns - c);
    float* HWY_RESTRICT dk_row = sums.dk + key * pairs.width + c;
    V dk = hn::Load(d, dk_row), t[Q];
    for (int i = 0; i < Q; ++i) t[i] = hn::Add(hn::Load(d, q + i * pairs.width), k);
    tanh(d, t);
    for (int i = 0; i < Q; ++i) {
      if (Careful && pairs.hidden[key * kTile + query + i] != 0) continue;
      const V ds = hn::Set(d, pairs.ds[key * kTile + query + i]);
      const V slope = hn::NegMulAdd(t[i], t[i], hn::Set(d, 1.0f));
      const V ds_w = hn::Mul(ds, w);
      dq[i] = hn::MulAdd(ds_w, slope, dq[i]);
      dk = hn::MulAdd(ds_w, slope, dk);
      dw = hn::MulAdd(ds, t[i], dw);
    }
    hn::Store(dk, d, dk_row);
  }
  for (int i = 0; i < Q; ++i) hn::Store(dq[i], d, dq_rows + i * pairs.width);
  hn::Store(dw, d, sums.dw + c);
}

template <bool Careful>
HWY_INLINE void additive_gradients_of_all(F d, const AdditivePairs& pairs, const AdditiveSums& sums) {
  constexpr int kQueries = 4;
  for (int64_t c = 0; c < pairs.columns; c += kLanes) {
    int64_t query = 0;
    for (; query + kQueries <= pairs.queries; query += kQueries) {
      additive_gradients_of<kQueries, Careful>(d, pairs, query, c, sums);
    }
    for (; query < pairs.queries; ++query) additive_gradients_of<1, Careful>(d, pairs, query, c, sums);
  }
}

// For all pairs, in an order that depends on the sizes alone: masked pairs change no bits of the others' sums.
HWY_NOINLINE inline void additive_gradients(F d, const AdditivePairs& pairs, const AdditiveSums& sums) {
  (pairs.hidden ? additive_gradients_of_all<true> : additive_gradients_of_all<false>)(d, pairs, sums);
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
