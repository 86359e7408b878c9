// SPDX-License-Identifier: Apache-2.0
// Backward on one tile: E^T and dS^T from the row statistics, by a fast path and by one with all stages; and the rows
// of q and dO that they are computed from. backward.cc has the equations, and iterates over the tiles;
// backward_sums-inl.h accumulates dK and dV.
#if defined(HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#undef HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#else
#define HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#endif

#include "heed/kernels/attention/additive-inl.h"
#include "heed/kernels/attention/prefetch.h"
#include "heed/kernels/attention/stages-inl.h"
#include "heed/kernels/attention/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// The maximum of a row that saw nothing: whatever its score, its weight is 0.
constexpr float kFarAbove = kExp2Whole / 2;

// The data of a tile over the current key block.
struct BackwardTile {
  Rows k, v;  // the keys of the block that some of its queries see, and their values
  int64_t D, Dv;
  const float *q_t, *do_t;   // Q^T [D][query] and dO'^T [Dv][query]
  const float *max, *delta;  // [query]
  Hiding hiding;
  float *weights, *d_scores;  // E^T and dS^T, [key][query]

  // One of its vectors.
  BackwardTile part(int vector) const {
    const int64_t n = vector * kLanes;
    BackwardTile one = *this;
    one.q_t += n, one.do_t += n, one.max += n, one.delta += n, one.weights += n, one.d_scores += n;
    return one;
  }
  // From row i of E^T on.
  BackwardTile from_row(int64_t i) const {
    BackwardTile rest = *this;
    rest.k = k.from(i), rest.v = v.from(i), rest.weights += i * kTile, rest.d_scores += i * kTile;
    return rest;
  }
};

// R rows of S^T become E^T = 2^(S - m) in place.
template <int R, int NV>
HWY_INLINE void weights_of_scores(F d, const V (&max)[NV], float* scores) {
  V e[R * NV];
  for (int i = 0; i < R * NV; ++i) e[i] = hn::Load(d, scores + i / NV * kTile + i % NV * kLanes);
  exp2_less(d, max, e);
  for (int i = 0; i < R * NV; ++i) hn::Store(e[i], d, scores + i / NV * kTile + i % NV * kLanes);
}

// E^T and dS^T for `keys` keys, as if none were masked. One vector alone takes more rows for as many accumulators.
// The struct is passed by value: through a reference its fields would be loaded again after every store of a vector.
template <int NV>
HWY_NOINLINE void weight_range(F d, int64_t keys, BackwardTile mem, Prefetcher& prefetcher) {
  constexpr int kRows = NV == 1 ? 8 : kTileRows;
  float *weights = mem.weights, *d_scores = mem.d_scores;
  in_pieces<kRows>(keys, [&]<int R>(int64_t i) HEED_INLINED {
    if constexpr (R == kRows) prefetcher.step();
    V acc[R][NV];
    product_rows<R, NV>(d, mem.k.from(i), mem.D, mem.q_t, acc);
    float* to = weights + i * kTile;
    unrolled<R * NV>([&](auto j)
                         HEED_INLINED { hn::Store(acc[j / NV][j % NV], d, to + j / NV * kTile + j % NV * kLanes); });
  });
  V max[NV];
  for (int n = 0; n < NV; ++n) max[n] = hn::Load(d, mem.max + n * kLanes);
  if (!all_near(d, max)) subtract_far(d, keys, max, weights);
  int64_t done = 0;
  for (; done + 2 <= keys; done += 2) weights_of_scores<2, NV>(d, max, weights + done * kTile);
  if (done < keys) weights_of_scores<1, NV>(d, max, weights + done * kTile);
  in_pieces<kRows>(keys, [&]<int R>(int64_t i) HEED_INLINED {
    if constexpr (R == kRows) prefetcher.step();
    V acc[R][NV];
    product_rows<R, NV>(d, mem.v.from(i), mem.Dv, mem.do_t, acc);
    unrolled<R * NV>([&](auto j) HEED_INLINED {
      constexpr int64_t n = j % NV * kLanes;
      const int64_t at = (i + j / NV) * kTile + n;
      const V dp = hn::Sub(acc[j / NV][j % NV], hn::Load(d, mem.delta + n));
      hn::Store(hn::Mul(hn::Load(d, weights + at), dp), d, d_scores + at);
    });
  });
}

// Clears masked pairs in rows [begin, end) of a tile. They may hold anything: a masked score may be far above the row's
// maximum, a masked value may be NaN.
inline void clear_masked_pairs(F d, const Tile& tile, int64_t begin, int64_t end, const BackwardTile& mem) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t n = 0; n < tile.vectors * kLanes; n += kLanes) {
      const auto visible = seen(d, tile.first + i, mem.hiding.low + n, mem.hiding.high + n);
      for (float* p : {mem.weights + i * kTile + n, mem.d_scores + i * kTile + n}) {
        hn::Store(hn::IfThenElseZero(visible, hn::Load(d, p)), d, p);
      }
    }
  }
}

// E^T and dS^T of one tile over the current block. Rows at its edges may be visible to one vector alone, and only there
// are there keys that some of its queries see and others do not.
template <int NV>
HWY_INLINE void weight_tile(F d, const Tile& tile, const BackwardTile& mem, Prefetcher& prefetcher) {
  const Tile::Edges edges = tile.edges();
  const auto edge = [&](int vector, int64_t begin, int64_t end) HWY_ATTR {
    if (begin < end) weight_range<1>(d, end - begin, mem.part(vector).from_row(begin), prefetcher);
  };
  edge(edges.lead_vector, 0, edges.lead);
  weight_range<NV>(d, edges.tail - edges.lead, mem.from_row(edges.lead), prefetcher);
  edge(edges.tail_vector, edges.tail, tile.rows);
  if (!tile.masked) return;
  clear_masked_pairs(d, tile, 0, tile.clear_begin(), mem);
  clear_masked_pairs(d, tile, tile.clear_end(), tile.rows, mem);
}

// The data of the stages of a tile. Null where a stage is not wanted.
struct BackwardStages {
  const HeadStages& head;
  const float *position, *extra, *keep;  // see StageScratch
  const float* w;                        // of the additive score
  const float* only_q;                   // the row of a tile's one query, for the additive score
  float scale, gate;
  float* d_bias;    // dZ^T of the tile, [key][query]
  float* gate_sum;  // [query]
};

// E^T of R keys from row i on, from their scores x; the derivative of a softcap goes to the place of dS^T.
template <int R, int NV>
HWY_INLINE void staged_weights(F d, const Tile& tile, int64_t i, const BackwardTile& mem, const BackwardStages& stages,
                               V (&x)[R * NV]) {
  float *weights = mem.weights + i * kTile, *slopes = mem.d_scores + i * kTile;
  cap_scores(d, stages.head, x);
  if (stages.head.cap != 0) {
    const V inverse = hn::Set(d, 1 / stages.head.cap), one = hn::Set(d, 1.0f);
    for (int j = 0; j < R * NV; ++j) {
      const V t = hn::Mul(x[j], inverse);
      hn::Store(hn::NegMulAdd(t, t, one), d, slopes + j / NV * kTile + j % NV * kLanes);
    }
  }
  add_terms<R, NV>(d, stages.head, tile.first + i, stages.position, stages.extra + i * kTile, x);
  for (int j = 0; j < R * NV; ++j) x[j] = hn::Sub(x[j], hn::Load(d, mem.max + j % NV * kLanes));
  exp2(d, x);
  for (int j = 0; j < R * NV; ++j) {
    const int64_t row = i + j / NV, n = j % NV * kLanes;
    if (stages.head.hides() || row < tile.clear_begin() || row >= tile.clear_end()) {
      x[j] = hn::IfThenElseZero(mem.hiding.seen_by(d, tile.first + row, row, n), x[j]);
    }
    hn::Store(x[j], d, weights + j / NV * kTile + n);
  }
}

// dS^T of R keys from row i on, from V dO'^T (acc), E^T (mem.weights) and the softcap's derivative (mem.d_scores). The
// weights become those of dV: gated, and zero where dropped.
template <int R, int NV>
HWY_INLINE void staged_d_scores(F d, const Tile& tile, int64_t i, const BackwardTile& mem, const BackwardStages& stages,
                                const V (&acc)[R][NV]) {
  float *weights = mem.weights + i * kTile, *d_scores = mem.d_scores + i * kTile;
  const V gate = hn::Set(d, stages.gate), scale = hn::Set(d, stages.scale);
  unrolled<R>([&](auto r) HEED_INLINED {
    const int64_t row = i + r;
    const bool hides = stages.head.hides() || row < tile.clear_begin() || row >= tile.clear_end();
    unrolled<NV>([&](auto n) HEED_INLINED {
      const int64_t at = r * kTile + n * kLanes, tile_at = row * kTile + n * kLanes;
      const V e = hn::Load(d, weights + at);
      V p = acc[r][n], kept = e;
      if (stages.keep) {
        p = hn::And(p, hn::Load(d, stages.keep + tile_at));
        kept = hn::And(e, hn::Load(d, stages.keep + tile_at));
      }
      V dz = hn::Mul(e, hn::MulSub(gate, p, hn::Load(d, mem.delta + n * kLanes)));
      V slope = stages.head.cap != 0 ? hn::Mul(scale, hn::Load(d, d_scores + at)) : scale;
      // A masked key or value may be NaN, and so the score and dP here.
      if (hides) {
        const auto seen_here = mem.hiding.seen_by(d, tile.first + row, row, n * kLanes);
        dz = hn::IfThenElseZero(seen_here, dz);
        p = hn::IfThenElseZero(seen_here, p);
        slope = hn::IfThenElseZero(seen_here, slope);
      }
      if (stages.gate_sum) {
        float* sum = stages.gate_sum + n * kLanes;
        hn::Store(hn::MulAdd(e, p, hn::Load(d, sum)), d, sum);
      }
      if (stages.d_bias) hn::Store(dz, d, stages.d_bias + tile_at);
      hn::Store(hn::Mul(gate, kept), d, weights + at);
      hn::Store(hn::Mul(slope, dz), d, d_scores + at);
    });
  });
}

// E^T and dS^T for the R keys from row i of the tile on.
template <int R, int NV>
HWY_INLINE void staged_weight_rows(F d, const Tile& tile, int64_t i, const BackwardTile& mem,
                                   const BackwardStages& stages) {
  V acc[R][NV];
  if (stages.only_q) {  // a query in lanes would leave all but one of them idle, and tanh is expensive
    const float* rows[R];
    float scores[R];
    for (int r = 0; r < R; ++r) rows[r] = mem.k.row(i + r);
    additive_dot<R>(d, stages.only_q, rows, stages.w, mem.D, scores);
    unrolled<R * NV>([&](auto j) HEED_INLINED { acc[j / NV][j % NV] = hn::Set(d, scores[j / NV]); });
  } else if (stages.w) {
    additive_rows<R, NV>(d, mem.k.from(i), mem.D, mem.q_t, stages.w, acc);
  } else {
    product_rows<R, NV>(d, mem.k.from(i), mem.D, mem.q_t, acc);
  }
  constexpr int kRows = R % 2 == 0 ? 2 : 1;  // as many as there are registers for
  unrolled<R / kRows>([&](auto step) HEED_INLINED {
    constexpr int r = step * kRows;
    V x[kRows * NV];
    unrolled<kRows * NV>([&](auto j) HEED_INLINED { x[j] = acc[r + j / NV][j % NV]; });
    staged_weights<kRows, NV>(d, tile, i + r, mem, stages, x);
  });
  product_rows<R, NV>(d, mem.v.from(i), mem.Dv, mem.do_t, acc);
  staged_d_scores<R, NV>(d, tile, i, mem, stages, acc);
}

// weight_tile with all stages.
template <int NV>
HWY_NOINLINE void staged_weight_tile(F d, const Tile& tile, const BackwardTile& mem, const BackwardStages& stages) {
  in_pieces<kTileRows>(tile.rows,
                       [&]<int R>(int64_t i) HWY_ATTR { staged_weight_rows<R, NV>(d, tile, i, mem, stages); });
}

// A row in backward's scratch: whole vectors, zero from `columns` on.
struct PaddedRow {
  float* data;
  int64_t columns, width;

  // Stores f(vector of `from`, its first column) for all of them, and clears the rest.
  template <class Function>
  HWY_INLINE void fill(F d, const float* from, const Function& f) const {
    int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) hn::Store(f(hn::LoadU(d, from + c), c), d, data + c);
    if (c < columns) {
      hn::Store(f(load_part(d, from + c, columns - c), c), d, data + c);
      c += kLanes;
    }
    for (; c < width; c += kLanes) hn::Store(hn::Zero(d), d, data + c);
  }
  void clear() const { std::memset(data, 0, static_cast<size_t>(width) * sizeof(float)); }
};

// Whether all elements shown to it are finite: the sum of x * 0 is NaN where one is not.
struct Finiteness {
  V sum;
  explicit Finiteness(F d) : sum(hn::Zero(d)) {}
  HWY_INLINE void add(F d, V x) { sum = hn::MulAdd(x, hn::Zero(d), sum); }
  bool all_finite(F d) const { return hn::AllTrue(d, hn::Eq(sum, hn::Zero(d))); }
};

HWY_INLINE void copy_row(F d, const float* from, const PaddedRow& to, Finiteness& finite) {
  to.fill(d, from, [&](V x, int64_t) HEED_INLINED {
    finite.add(d, x);
    return x;
  });
}

// to = factor * from; returns to . other.
HWY_INLINE float scale_and_dot(F d, const float* from, float factor, const float* other, const PaddedRow& to,
                               Finiteness& finite) {
  V product = hn::Zero(d);
  to.fill(d, from, [&](V x, int64_t c) HEED_INLINED {
    const V scaled = hn::Mul(x, hn::Set(d, factor));
    finite.add(d, scaled);
    product = hn::MulAdd(scaled, load_part(d, other + c, to.columns - c), product);
    return scaled;
  });
  return hn::GetLane(hn::SumOfLanes(d, product));
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
