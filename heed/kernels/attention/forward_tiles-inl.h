// What forward does with a tile: S^T, and its weights 2^(S - m) in place, by the short way and through all stages.
// forward.cc walks over the tiles.
#if defined(HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#undef HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#else
#define HEED_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#endif

#include "heed/kernels/attention/additive-inl.h"
#include "heed/kernels/attention/ahead.h"
#include "heed/kernels/attention/stages-inl.h"
#include "heed/kernels/attention/tiles-inl.h"
#include "heed/kernels/attention/top-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// R rows of S^T, stored, and their maximum.
template <int R, int NV>
HWY_INLINE void score_rows(F d, const float* k, int64_t stride, int64_t D, const float* q, float* scores,
                           V (&max)[NV]) {
  V s[R][NV];
  product_rows<R, NV>(d, k, stride, D, q, s);
  unrolled<R * NV>([&](auto i) HEED_INLINED {
    constexpr int r = i / NV, n = i % NV;
    hn::Store(s[r][n], d, scores + r * kTile + n * kLanes);
    max[n] = hn::Max(max[n], s[r][n]);
  });
}

// S^T for `keys` rows of K, and the maximum over them.
template <int NV>
HWY_INLINE void scores_and_max(F d, Rows k, int64_t keys, int64_t D, const float* q, float* scores, V (&max)[NV],
                               Ahead& ahead) {
  in_pieces<kTileRows>(keys, [&]<int R>(int64_t key) HEED_INLINED {
    if constexpr (R == kTileRows) ahead.some();
    score_rows<R, NV>(d, k.row(key), k.stride, D, q, scores + key * kTile, max);
  });
}

// S^T of a masked tile, whose rows at the edges only one of two vectors has to do with: the other one's scores there
// are left as they are, for the mask to hide. One vector alone needs more rows for as many sums.
template <int NV>
HWY_NOINLINE void scores_within_edges(F d, Rows k, int64_t D, const Tile& tile, const float* q, float* scores,
                                      Ahead& ahead) {
  const Tile::Edges edges = tile.edges();
  V ignored[NV];
  for (int n = 0; n < NV; ++n) ignored[n] = hn::Zero(d);
  const int64_t lead = edges.lead;
  scores_and_max<NV>(d, {k.row(lead), k.stride}, edges.tail - lead, D, q, scores + lead * kTile, ignored, ahead);
  const auto edge = [&](int vector, int64_t i, int64_t end) HWY_ATTR {
    const int64_t n = vector * kLanes;
    V one[1] = {hn::Zero(d)};
    in_pieces<8>(end - i, [&]<int R>(int64_t at) HEED_INLINED {
      score_rows<R, 1>(d, k.row(i + at), k.stride, D, q + n, scores + (i + at) * kTile + n, one);
    });
  };
  edge(edges.lead_vector, 0, lead);
  edge(edges.tail_vector, edges.tail, tile.rows);
}

// Hidden scores become -inf, and the maximum is taken after that: a large hidden score must not push the visible ones
// down to zero. Rows of keys that all queries see need no more than the maximum.
template <int NV>
HWY_INLINE void mask_and_max(F d, const Tile& tile, const float* low, const float* high, float* scores, V (&max)[NV]) {
  const V hidden = hn::Set(d, -std::numeric_limits<float>::infinity());
  const int64_t clear_begin = tile.clear_begin(), clear_end = tile.clear_end();
  for (int64_t i = 0; i < tile.rows; ++i) {
    const bool clear = i >= clear_begin && i < clear_end;
    for (int n = 0; n < NV; ++n) {
      float* p = scores + i * kTile + n * kLanes;
      V s = hn::Load(d, p);
      if (!clear) {
        s = hn::IfThenElse(seen(d, tile.first + i, low + n * kLanes, high + n * kLanes), s, hidden);
        hn::Store(s, d, p);
      }
      max[n] = hn::Max(max[n], s);
    }
  }
}

// R rows of scores become 2^(s - max), and are added to the sums; the maxima are within reach of exp2_less.
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

// Scores of one tile over the current key block, turned into weights 2^(s - m) in place. Numbers a query: max and sum
// are carried on, rescale gets 2^(m_old - m). The maximum is rounded up to an integer, which makes that factor exact.
template <int NV>
HWY_NOINLINE void tile_weights(F d, Rows k, int64_t D, const Tile& tile, const float* q, const float* low,
                               const float* high, float* scores, float* row_max, float* row_sum, float* rescale,
                               Ahead& ahead) {
  V old_max[NV], max[NV], sum[NV];
  // -FLT_MAX, not -inf: s - m stays a number (or -inf) even for a row that has seen nothing.
  for (int n = 0; n < NV; ++n) {
    old_max[n] = tile.started ? hn::Load(d, row_max + n * kLanes) : hn::Set(d, -FLT_MAX);
    max[n] = old_max[n];
  }
  if (tile.masked) {
    scores_within_edges<NV>(d, k, D, tile, q, scores, ahead);
    mask_and_max<NV>(d, tile, low, high, scores, max);
  } else {
    scores_and_max<NV>(d, k, tile.rows, D, q, scores, max, ahead);
  }
  V whole[NV];
  for (int n = 0; n < NV; ++n) {
    whole[n] = max[n] = hn::Ceil(max[n]);
    sum[n] = hn::Zero(d);
  }
  if (!all_near(d, whole)) subtract_far(d, tile.rows, whole, scores);
  int64_t i = 0;
  for (; i + 2 <= tile.rows; i += 2) exponentials<2>(d, whole, scores + i * kTile, sum);
  if (i < tile.rows) exponentials<1>(d, whole, scores + i * kTile, sum);
  for (int n = 0; n < NV; ++n) {
    if (tile.started) {
      const V factor = exp2_integer(d, hn::Sub(old_max[n], max[n]));
      hn::Store(factor, d, rescale + n * kLanes);
      sum[n] = hn::MulAdd(hn::Load(d, row_sum + n * kLanes), factor, sum[n]);
    }
    hn::Store(max[n], d, row_max + n * kLanes);
    hn::Store(sum[n], d, row_sum + n * kLanes);
  }
}

// The same by the long way, for whatever ScoreStages asks. Numbers a query, and null where not asked for:
struct TileStages {
  const HeadStages& head;
  const float *position, *extra, *keep;  // see StageScratch
  const float* w;                        // additive score
  float* surprise;                       // sum over keys of 2^x x, with x = s - m
  const TopKeys* top;
};

// R rows of S^T, from row i of the tile on, through all stages; stored, and their maximum. Two vectors at a time go
// through tanh: more would leave the others no registers.
template <int R, int NV, bool Additive>
HWY_INLINE void staged_score_rows(F d, Rows k, int64_t D, const Tile& tile, const float* q, const TileStages& stages,
                                  const Hiding& hiding, int64_t i, float* scores, V (&max)[NV]) {
  V s[R][NV];
  if constexpr (Additive) {
    additive_rows<R, NV>(d, k.row(i), k.stride, D, q, stages.w, s);
  } else {
    product_rows<R, NV>(d, k.row(i), k.stride, D, q, s);
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
      const auto visible = seen(d, tile.first + i + j / NV, hiding.low + n, hiding.high + n);
      x[j] = hn::IfThenElse(visible, x[j], hn::Set(d, kHidden));
    });
  }
  unrolled<R * NV>([&](auto j) HEED_INLINED {
    hn::Store(x[j], d, scores + (i + j / NV) * kTile + j % NV * kLanes);
    max[j % NV] = hn::Max(max[j % NV], x[j]);
  });
}

template <int NV, bool Additive>
HWY_INLINE void staged_scores(F d, Rows k, int64_t D, const Tile& tile, const float* q, const TileStages& stages,
                              const Hiding& hiding, float* scores, V (&max)[NV], Ahead& ahead) {
  constexpr int kRows = Additive ? 2 : kTileRows;
  in_pieces<kRows>(tile.rows, [&]<int R>(int64_t i) HEED_INLINED {
    if constexpr (R == kRows) ahead.some();
    staged_score_rows<R, NV, Additive>(d, k, D, tile, q, stages, hiding, i, scores, max);
  });
}

// R rows of scores become 2^(s - max). Keeps: what dropout drops, by `keep`, counts in the sums, and then becomes 0.
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
      // Made again, which is cheaper than a register for each. Held where 2^x is 0: a hidden score is -inf.
      const V x = max_keep_nan(d, hn::Set(d, -127.0f), exponent(j));
      surprise[n] = hn::MulAdd(e[j], x, surprise[n]);
    }
    if constexpr (Keeps) e[j] = hn::And(e[j], hn::Load(d, keep + at));
    hn::Store(e[j], d, scores + at);
  }
}

// All rows of a tile.
template <bool Surprised, bool Keeps, int NV>
HWY_NOINLINE void staged_exponentials_of(F d, int64_t rows, const V (&max)[NV], const float* keep, float* scores,
                                         V (&sum_of)[NV], V (&surprise_of)[NV]) {
  V m[NV], sum[NV], surprise[NV];
  for (int n = 0; n < NV; ++n) m[n] = max[n], sum[n] = sum_of[n], surprise[n] = surprise_of[n];
  for (; rows >= 2; rows -= 2, scores += 2 * kTile, keep += 2 * kTile) {
    staged_exponentials<Surprised, Keeps, 2>(d, m, keep, scores, sum, surprise);
  }
  if (rows > 0) staged_exponentials<Surprised, Keeps, 1>(d, m, keep, scores, sum, surprise);
  for (int n = 0; n < NV; ++n) sum_of[n] = sum[n], surprise_of[n] = surprise[n];
}

template <int NV>
HWY_NOINLINE void staged_tile_weights(F d, Rows k, int64_t D, const Tile& tile, const float* q,
                                      const TileStages& stages, const Hiding& hiding, float* scores, float* row_max,
                                      float* row_sum, float* rescale, Ahead& ahead) {
  V old_max[NV], max[NV], sum[NV], surprise[NV];
  for (int n = 0; n < NV; ++n) {
    old_max[n] = tile.started ? hn::Load(d, row_max + n * kLanes) : hn::Set(d, -FLT_MAX);
    max[n] = old_max[n];
    sum[n] = surprise[n] = hn::Zero(d);
  }
  if (stages.head.plain() && !stages.w && !tile.masked) {
    scores_and_max<NV>(d, k, tile.rows, D, q, scores, max, ahead);
  } else if (stages.w) {
    staged_scores<NV, true>(d, k, D, tile, q, stages, hiding, scores, max, ahead);
  } else {
    staged_scores<NV, false>(d, k, D, tile, q, stages, hiding, scores, max, ahead);
  }
  if (stages.top) stages.top->add_rows<NV>(d, scores, tile.first, tile.rows);

  for (int n = 0; n < NV; ++n) max[n] = hn::Ceil(max[n]);
  const auto exponentials_of =
      stages.surprise
          ? (stages.keep ? staged_exponentials_of<true, true, NV> : staged_exponentials_of<true, false, NV>)
          : (stages.keep ? staged_exponentials_of<false, true, NV> : staged_exponentials_of<false, false, NV>);
  exponentials_of(d, tile.rows, max, stages.keep, scores, sum, surprise);
  for (int n = 0; n < NV; ++n) {
    const int64_t at = n * kLanes;
    if (tile.started) {
      const V gap = hn::Sub(old_max[n], max[n]), factor = exp2_integer(d, gap), old_sum = hn::Load(d, row_sum + at);
      hn::Store(factor, d, rescale + at);
      sum[n] = hn::MulAdd(old_sum, factor, sum[n]);
      if (stages.surprise) {
        // Each x of before becomes x + gap. A gap beyond exp2's range would meet a factor of 0.
        const V held = max_keep_nan(d, hn::Set(d, -127.0f), gap);
        const V moved = hn::MulAdd(old_sum, held, hn::Load(d, stages.surprise + at));
        surprise[n] = hn::MulAdd(moved, factor, surprise[n]);
      }
    }
    hn::Store(max[n], d, row_max + at);
    hn::Store(sum[n], d, row_sum + at);
    if (stages.surprise) hn::Store(surprise[n], d, stages.surprise + at);
  }
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
