// SPDX-License-Identifier: Apache-2.0
// Forward on one tile: S^T, turned into weights 2^(S - m) in place (the online softmax), by a fast path and by one with
// all stages. forward.cc iterates over the tiles.
#if defined(HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#undef HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#else
#define HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#endif

#include "heed/kernels/attention/additive-inl.h"
#include "heed/kernels/attention/prefetch.h"
#include "heed/kernels/attention/stages-inl.h"
#include "heed/kernels/attention/tiles-inl.h"
#include "heed/kernels/attention/top-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// The data of a tile over the current key block. Functions take it by value: through a reference the compiler would
// have to load its fields again after every store of a vector.
struct ForwardTile {
  Rows k;  // the keys of the block that some of its queries see
  int64_t D;
  const float* q;  // Q^T [D][query], scaled
  Hiding hiding;
  float* scores;               // S^T [key][query], then the weights
  float *max, *sum, *rescale;  // [query]: m and the sum, carried on; 2^(m_old - m)

  // From row i of the scores on.
  ForwardTile from_row(int64_t i) const {
    ForwardTile rest = *this;
    rest.k = k.from(i);
    rest.scores += i * kTile;
    return rest;
  }
};

// R rows of S^T, stored, and their maximum.
template <int R, int NV>
HWY_INLINE void score_rows(F d, Rows k, int64_t D, const float* q, float* scores, V (&max)[NV]) {
  V s[R][NV];
  product_rows<R, NV>(d, k, D, q, s);
  unrolled<R * NV>([&](auto i) HEED_INLINED {
    constexpr int r = i / NV, n = i % NV;
    hn::Store(s[r][n], d, scores + r * kTile + n * kLanes);
    max[n] = hn::Max(max[n], s[r][n]);
  });
}

// `rows` rows of S^T, and the maximum over them.
template <int NV>
HWY_INLINE void scores_and_max(F d, int64_t rows, ForwardTile mem, V (&max)[NV], Prefetcher& prefetcher) {
  in_pieces<kTileRows>(rows, [&]<int R>(int64_t i) HEED_INLINED {
    if constexpr (R == kTileRows) prefetcher.step();
    score_rows<R, NV>(d, mem.k.from(i), mem.D, mem.q, mem.scores + i * kTile, max);
  });
}

// S^T of a masked tile, whose first and last rows may be visible to one of its two vectors alone: the other one's
// scores there are not computed; the mask hides them. One vector alone takes more rows for as many accumulators.
template <int NV>
HWY_NOINLINE void scores_within_edges(F d, const Tile& tile, ForwardTile mem, Prefetcher& prefetcher) {
  const Tile::Edges edges = tile.edges();
  V ignored[NV];
  for (int n = 0; n < NV; ++n) ignored[n] = hn::Zero(d);
  scores_and_max<NV>(d, edges.tail - edges.lead, mem.from_row(edges.lead), ignored, prefetcher);
  const auto edge = [&](int vector, int64_t i, int64_t end) HWY_ATTR {
    const int64_t n = vector * kLanes;
    V one[1] = {hn::Zero(d)};
    in_pieces<8>(end - i, [&]<int R>(int64_t at) HEED_INLINED {
      score_rows<R, 1>(d, mem.k.from(i + at), mem.D, mem.q + n, mem.scores + (i + at) * kTile + n, one);
    });
  };
  edge(edges.lead_vector, 0, edges.lead);
  edge(edges.tail_vector, edges.tail, tile.rows);
}

// Masked scores become -inf, and the maximum is taken after that: a large masked score must not push the visible ones
// down to zero. Rows that all queries see need the maximum alone.
template <int NV>
HWY_INLINE void mask_and_max(F d, const Tile& tile, ForwardTile mem, V (&max)[NV]) {
  const V hidden = hn::Set(d, kHidden);
  const float *low = mem.hiding.low, *high = mem.hiding.high;
  const int64_t clear_begin = tile.clear_begin(), clear_end = tile.clear_end();
  for (int64_t i = 0; i < tile.rows; ++i) {
    const bool clear = i >= clear_begin && i < clear_end;
    for (int n = 0; n < NV; ++n) {
      float* p = mem.scores + i * kTile + n * kLanes;
      V s = hn::Load(d, p);
      if (!clear) {
        s = hn::IfThenElse(seen(d, tile.first + i, low + n * kLanes, high + n * kLanes), s, hidden);
        hn::Store(s, d, p);
      }
      max[n] = hn::Max(max[n], s);
    }
  }
}

// R rows of scores become 2^(s - max), and are added to the sums; the maxima are in the range of exp2_less.
template <int R, int NV>
HWY_INLINE void exponentials(F d, const V (&max)[NV], float* scores, V (&sum)[NV]) {
  V e[R * NV];
  for (int i = 0; i < R * NV; ++i) e[i] = hn::Load(d, scores + i / NV * kTile + i % NV * kLanes);
  exp2_less(d, max, e);
  for (int i = 0; i < R * NV; ++i) {
    hn::Store(e[i], d, scores + i / NV * kTile + i % NV * kLanes);
    sum[i % NV] = hn::Add(sum[i % NV], e[i]);
  }
}

// The scores of one tile over the current key block, turned into weights 2^(s - m) in place; max, sum and rescale are
// updated. The maximum is rounded up to an integer, which makes the factor 2^(m_old - m) exact.
template <int NV>
HWY_NOINLINE void tile_weights(F d, const Tile& tile, ForwardTile mem, Prefetcher& prefetcher) {
  V old_max[NV], max[NV], sum[NV];
  // -FLT_MAX, not -inf: s - m stays a number (or -inf) even for a row that has seen no key.
  for (int n = 0; n < NV; ++n) {
    old_max[n] = tile.started ? hn::Load(d, mem.max + n * kLanes) : hn::Set(d, -FLT_MAX);
    max[n] = old_max[n];
  }
  if (tile.masked) {
    scores_within_edges<NV>(d, tile, mem, prefetcher);
    mask_and_max<NV>(d, tile, mem, max);
  } else {
    scores_and_max<NV>(d, tile.rows, mem, max, prefetcher);
  }
  V whole[NV];
  for (int n = 0; n < NV; ++n) {
    whole[n] = max[n] = hn::Ceil(max[n]);
    sum[n] = hn::Zero(d);
  }
  if (!all_near(d, whole)) subtract_far(d, tile.rows, whole, mem.scores);
  int64_t i = 0;
  for (; i + 2 <= tile.rows; i += 2) exponentials<2>(d, whole, mem.scores + i * kTile, sum);
  if (i < tile.rows) exponentials<1>(d, whole, mem.scores + i * kTile, sum);
  for (int n = 0; n < NV; ++n) {
    if (tile.started) {
      const V factor = exp2_integer(d, hn::Sub(old_max[n], max[n]));
      hn::Store(factor, d, mem.rescale + n * kLanes);
      sum[n] = hn::MulAdd(hn::Load(d, mem.sum + n * kLanes), factor, sum[n]);
    }
    hn::Store(max[n], d, mem.max + n * kLanes);
    hn::Store(sum[n], d, mem.sum + n * kLanes);
  }
}

// The data of the stages of a tile. Null where a stage is not wanted.
struct ForwardStages {
  const HeadStages& head;
  const float *position, *extra, *keep;  // see StageScratch
  const float* w;                        // of the additive score
  float* surprise;                       // [query]: sum over keys of 2^x x, with x = s - m
  const TopKeys* top;
};

// R rows of S^T, from row i of the tile on, through all stages; stored, and their maximum. One row's vectors at a time
// go through tanh: more would leave too few registers to the others.
template <int R, int NV, bool Additive>
HWY_INLINE void staged_score_rows(F d, const Tile& tile, ForwardTile mem, const ForwardStages& stages, int64_t i,
                                  V (&max)[NV]) {
  V s[R][NV];
  if constexpr (Additive) {
    additive_rows<R, NV>(d, mem.k.from(i), mem.D, mem.q, stages.w, s);
  } else {
    product_rows<R, NV>(d, mem.k.from(i), mem.D, mem.q, s);
  }
  if (stages.head.cap != 0) {
    unrolled<R>([&](auto r) HEED_INLINED { cap_scores(d, stages.head, s[r]); });
  }
  V x[R * NV];
  unrolled<R * NV>([&](auto j) HEED_INLINED { x[j] = s[j / NV][j % NV]; });
  add_terms<R, NV>(d, stages.head, tile.first + i, stages.position, stages.extra + i * kTile, x);
  if (i < tile.clear_begin() || i + R > tile.clear_end()) {
    unrolled<R * NV>([&](auto j) HEED_INLINED {
      constexpr int64_t n = j % NV * kLanes;
      const auto visible = seen(d, tile.first + i + j / NV, mem.hiding.low + n, mem.hiding.high + n);
      x[j] = hn::IfThenElse(visible, x[j], hn::Set(d, kHidden));
    });
  }
  unrolled<R * NV>([&](auto j) HEED_INLINED {
    hn::Store(x[j], d, mem.scores + (i + j / NV) * kTile + j % NV * kLanes);
    max[j % NV] = hn::Max(max[j % NV], x[j]);
  });
}

template <int NV, bool Additive>
HWY_INLINE void staged_scores(F d, const Tile& tile, ForwardTile mem, const ForwardStages& stages, V (&max)[NV],
                              Prefetcher& prefetcher) {
  constexpr int kRows = Additive ? 2 : kTileRows;
  in_pieces<kRows>(tile.rows, [&]<int R>(int64_t i) HEED_INLINED {
    if constexpr (R == kRows) prefetcher.step();
    staged_score_rows<R, NV, Additive>(d, tile, mem, stages, i, max);
  });
}

// R rows of scores become 2^(s - max). Keeps: dropout by the mask `keep`, after the sums, which count dropped weights
// too.
template <bool Surprised, bool Keeps, int R, int NV>
HWY_INLINE void staged_exponentials(F d, const V (&max)[NV], const float* keep, float* scores, V (&sum)[NV],
                                    V (&surprise)[NV]) {
  const auto exponent = [&](int j) {
    return hn::Sub(hn::Load(d, scores + j / NV * kTile + j % NV * kLanes), max[j % NV]);
  };
  V e[R * NV];
  for (int j = 0; j < R * NV; ++j) e[j] = exponent(j);
  exp2(d, e);
  for (int j = 0; j < R * NV; ++j) {
    const int n = j % NV;
    const int64_t at = j / NV * kTile + n * kLanes;
    sum[n] = hn::Add(sum[n], e[j]);
    if constexpr (Surprised) {
      // Computed again, which is cheaper than a register for each. Clamped where 2^x is 0: a masked score is -inf.
      const V x = max_keep_nan(d, hn::Set(d, -127.0f), exponent(j));
      surprise[n] = hn::MulAdd(e[j], x, surprise[n]);
    }
    if constexpr (Keeps) e[j] = hn::And(e[j], hn::Load(d, keep + at));
    hn::Store(e[j], d, scores + at);
  }
}

// The online softmax of a tile while it is in one block: its new maximum, and sums over the block.
template <int NV>
struct BlockSoftmax {
  V max[NV], sum[NV], surprise[NV];
};

// All rows of a tile. The sums are copied to locals, so that they are in registers.
template <bool Surprised, bool Keeps, int NV>
HWY_NOINLINE void staged_exponentials_of(F d, int64_t rows, const float* keep, float* scores,
                                         BlockSoftmax<NV>& softmax) {
  V m[NV], sum[NV], surprise[NV];
  for (int n = 0; n < NV; ++n) m[n] = softmax.max[n], sum[n] = softmax.sum[n], surprise[n] = softmax.surprise[n];
  for (; rows >= 2; rows -= 2, scores += 2 * kTile, keep += 2 * kTile) {
    staged_exponentials<Surprised, Keeps, 2>(d, m, keep, scores, sum, surprise);
  }
  if (rows > 0) staged_exponentials<Surprised, Keeps, 1>(d, m, keep, scores, sum, surprise);
  for (int n = 0; n < NV; ++n) softmax.sum[n] = sum[n], softmax.surprise[n] = surprise[n];
}

// tile_weights with all stages.
template <int NV>
HWY_NOINLINE void staged_tile_weights(F d, const Tile& tile, ForwardTile mem, const ForwardStages& stages,
                                      Prefetcher& prefetcher) {
  V old_max[NV], max[NV];
  for (int n = 0; n < NV; ++n) {
    old_max[n] = tile.started ? hn::Load(d, mem.max + n * kLanes) : hn::Set(d, -FLT_MAX);
    max[n] = old_max[n];
  }
  if (stages.head.plain() && !stages.w && !tile.masked) {
    scores_and_max<NV>(d, tile.rows, mem, max, prefetcher);
  } else if (stages.w) {
    staged_scores<NV, true>(d, tile, mem, stages, max, prefetcher);
  } else {
    staged_scores<NV, false>(d, tile, mem, stages, max, prefetcher);
  }
  if (stages.top) stages.top->add_rows<NV>(d, mem.scores, tile.first, tile.rows);

  BlockSoftmax<NV> now;
  for (int n = 0; n < NV; ++n) {
    now.max[n] = hn::Ceil(max[n]);
    now.sum[n] = now.surprise[n] = hn::Zero(d);
  }
  const auto exponentials_of =
      stages.surprise
          ? (stages.keep ? staged_exponentials_of<true, true, NV> : staged_exponentials_of<true, false, NV>)
          : (stages.keep ? staged_exponentials_of<false, true, NV> : staged_exponentials_of<false, false, NV>);
  exponentials_of(d, tile.rows, stages.keep, mem.scores, now);
  for (int n = 0; n < NV; ++n) {
    const int64_t at = n * kLanes;
    if (tile.started) {
      const V gap = hn::Sub(old_max[n], now.max[n]), factor = exp2_integer(d, gap), old_sum = hn::Load(d, mem.sum + at);
      hn::Store(factor, d, mem.rescale + at);
      now.sum[n] = hn::MulAdd(old_sum, factor, now.sum[n]);
      if (stages.surprise) {
        // Each x of earlier blocks becomes x + gap. Clamped: beyond exp2's range the factor is 0.
        const V held = max_keep_nan(d, hn::Set(d, -127.0f), gap);
        const V moved = hn::MulAdd(old_sum, held, hn::Load(d, stages.surprise + at));
        now.surprise[n] = hn::MulAdd(moved, factor, now.surprise[n]);
      }
    }
    hn::Store(now.max[n], d, mem.max + at);
    hn::Store(now.sum[n], d, mem.sum + at);
    if (stages.surprise) hn::Store(now.surprise[n], d, stages.surprise + at);
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
