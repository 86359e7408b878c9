// What backward does with a tile: E^T and dS^T from the row statistics, by the short way and through all stages, and
// spreading them over dV and dK. backward.cc has the equations, and walks over the tiles.
#if defined(HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#undef HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#else
#define HEED_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#endif

#include <bit>

#include "heed/kernels/attention/additive-inl.h"
#include "heed/kernels/attention/stages-inl.h"
#include "heed/kernels/attention/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// The maximum of a row that saw nothing: whatever its score, its weight is 0.
constexpr float kFarAbove = kExp2Whole / 2;

// A tile's numbers a query, and where its rows of E^T and dS^T go.
struct TileMemory {
  const float *q_t, *do_t, *max, *delta, *low, *high;
  float *weights, *d_scores;

  // Those of one vector.
  TileMemory part(int vector) const {
    const int64_t n = vector * kLanes;
    return {q_t + n, do_t + n, max + n, delta + n, low + n, high + n, weights + n, d_scores + n};
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

// E^T and dS^T for `keys` keys, as if all were seen. One vector alone needs more rows for as many sums.
template <int NV>
HWY_NOINLINE void weight_range(F d, const AttentionShape& s, Rows k, Rows v, int64_t keys, const TileMemory& mem,
                               float* weights, float* d_scores, Ahead& ahead) {
  constexpr int kRows = NV == 1 ? 8 : kTileRows;
  in_pieces<kRows>(keys, [&]<int R>(int64_t i) HEED_INLINED {
    if constexpr (R == kRows) ahead.some();
    V acc[R][NV];
    product_rows<R, NV>(d, k.row(i), k.stride, s.D, mem.q_t, acc);
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
    if constexpr (R == kRows) ahead.some();
    V acc[R][NV];
    product_rows<R, NV>(d, v.row(i), v.stride, s.Dv, mem.do_t, acc);
    unrolled<R * NV>([&](auto j) HEED_INLINED {
      constexpr int64_t n = j % NV * kLanes;
      const int64_t at = (i + j / NV) * kTile + n;
      const V dp = hn::Sub(acc[j / NV][j % NV], hn::Load(d, mem.delta + n));
      hn::Store(hn::Mul(hn::Load(d, weights + at), dp), d, d_scores + at);
    });
  });
}

// Clears hidden pairs in rows [begin, end) of a tile. What stands there may be anything: a hidden score may lie far
// above the row's maximum, a hidden value may be NaN.
inline void hide_pairs(F d, const Tile& tile, int64_t begin, int64_t end, const TileMemory& mem) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t n = 0; n < tile.vectors * kLanes; n += kLanes) {
      const auto visible = seen(d, tile.first + i, mem.low + n, mem.high + n);
      for (float* p : {mem.weights + i * kTile + n, mem.d_scores + i * kTile + n}) {
        hn::Store(hn::IfThenElseZero(visible, hn::Load(d, p)), d, p);
      }
    }
  }
}

// Rows of a tile that only one of its vectors has to do with.
inline void weight_edge(F d, const AttentionShape& s, Rows k, Rows v, int vector, int64_t begin, int64_t end,
                        const TileMemory& mem, Ahead& ahead) {
  if (begin == end) return;
  const int64_t at = begin * kTile + vector * kLanes;
  weight_range<1>(d, s, {k.row(begin), k.stride}, {v.row(begin), v.stride}, end - begin, mem.part(vector),
                  mem.weights + at, mem.d_scores + at, ahead);
}

// The same for the keys of the current block that the tile sees: k, v and the results begin with the first of them.
// Only at the ends of its range are there keys that not all of its queries see.
template <int NV>
HWY_INLINE void weight_tile(F d, const AttentionShape& s, Rows k, Rows v, const Tile& tile, const TileMemory& mem,
                            Ahead& ahead) {
  const Tile::Edges edges = tile.edges();
  const int64_t i = edges.lead, at = i * kTile;
  weight_edge(d, s, k, v, edges.lead_vector, 0, edges.lead, mem, ahead);
  weight_range<NV>(d, s, {k.row(i), k.stride}, {v.row(i), v.stride}, edges.tail - i, mem, mem.weights + at,
                   mem.d_scores + at, ahead);
  weight_edge(d, s, k, v, edges.tail_vector, edges.tail, tile.rows, mem, ahead);
  if (!tile.masked) return;
  hide_pairs(d, tile, 0, tile.clear_begin(), mem);
  hide_pairs(d, tile, tile.clear_end(), tile.rows, mem);
}

// The long way, for whatever ScoreStages asks. Null where not asked for:
struct BackwardStages {
  const HeadStages& head;
  const Hiding& hiding;
  const float *position, *extra, *keep;  // see StageScratch
  const float* w;                        // additive score
  const float* only_q;                   // the row of a tile's one query, for the additive score
  float scale, gate;
  float* d_bias;    // dZ^T of the tile
  float* gate_sum;  // a number a query
};

// E^T of R keys, from their products; where a softcap is, its derivative goes to `slopes`.
template <int R, int NV>
HWY_INLINE void staged_exponentials(F d, const Tile& tile, int64_t i, const TileMemory& mem,
                                    const BackwardStages& stages, V (&x)[R * NV], float* weights, float* slopes) {
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
      x[j] = hn::IfThenElseZero(stages.hiding.seen_by(d, tile.first + row, row, n), x[j]);
    }
    hn::Store(x[j], d, weights + j / NV * kTile + n);
  }
}

// dS^T of R keys from V dO'^T (acc), E^T (weights) and the softcap's derivative (d_scores); weights become those of dV.
template <int R, int NV>
HWY_INLINE void staged_d_scores(F d, const Tile& tile, int64_t i, const TileMemory& mem, const BackwardStages& stages,
                                const V (&acc)[R][NV], float* weights, float* d_scores) {
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
      // A hidden key or value may be NaN, and so the score and dP here.
      if (hides) {
        const auto seen_here = stages.hiding.seen_by(d, tile.first + row, row, n * kLanes);
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
HWY_INLINE void staged_weight_rows(F d, const AttentionShape& s, Rows k, Rows v, const Tile& tile, int64_t i,
                                   const TileMemory& mem, const BackwardStages& stages) {
  float *weights = mem.weights + i * kTile, *d_scores = mem.d_scores + i * kTile;
  V acc[R][NV];
  if (stages.only_q) {  // in lanes it would leave all but one idle, and tanh is dear
    const float* rows[R];
    float scores[R];
    for (int r = 0; r < R; ++r) rows[r] = k.row(i + r);
    additive_dot<R>(d, stages.only_q, rows, stages.w, s.D, scores);
    unrolled<R * NV>([&](auto j) HEED_INLINED { acc[j / NV][j % NV] = hn::Set(d, scores[j / NV]); });
  } else if (stages.w) {
    additive_rows<R, NV>(d, k.row(i), k.stride, s.D, mem.q_t, stages.w, acc);
  } else {
    product_rows<R, NV>(d, k.row(i), k.stride, s.D, mem.q_t, acc);
  }
  constexpr int kRows = R % 2 == 0 ? 2 : 1;  // as many as registers hold
  unrolled<R / kRows>([&](auto step) HEED_INLINED {
    constexpr int r = step * kRows;
    V x[kRows * NV];
    unrolled<kRows * NV>([&](auto j) HEED_INLINED { x[j] = acc[r + j / NV][j % NV]; });
    staged_exponentials<kRows, NV>(d, tile, i + r, mem, stages, x, weights + r * kTile, d_scores + r * kTile);
  });
  product_rows<R, NV>(d, v.row(i), v.stride, s.Dv, mem.do_t, acc);
  staged_d_scores<R, NV>(d, tile, i, mem, stages, acc, weights, d_scores);
}

template <int NV>
HWY_NOINLINE void staged_weight_tile(F d, const AttentionShape& s, Rows k, Rows v, const Tile& tile,
                                     const TileMemory& mem, const BackwardStages& stages) {
  in_pieces<kTileRows>(tile.rows,
                       [&]<int R>(int64_t i) HWY_ATTR { staged_weight_rows<R, NV>(d, s, k, v, tile, i, mem, stages); });
}

// The queries of a tile that see one of some keys, counted from the block's first, and where their weights stand.
struct QueryRange {
  int64_t begin, count, weights_at{0};
};

HWY_INLINE QueryRange queries_that_see(F d, const Tile& tile, int64_t first, int64_t keys, const float* low,
                                       const float* high) {
  if (tile.rows == 0 || tile.first >= first + keys || tile.first + tile.rows <= first) return {0, 0};
  if (first >= tile.keys.all_begin && first + keys <= tile.keys.all_end) return {0, tile.count};
  const V begin = hn::Set(d, static_cast<float>(first)), end = hn::Set(d, static_cast<float>(first + keys));
  uint32_t seen_by = 0;  // a bit a query
  for (int64_t n = 0; n < kTile; n += kLanes) {
    const auto sees = hn::And(hn::Lt(hn::Load(d, low + n), end), hn::Gt(hn::Load(d, high + n), begin));
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, sees, bits);
    uint16_t lanes;
    std::memcpy(&lanes, bits, sizeof lanes);
    seen_by |= uint32_t{lanes} << n;
  }
  seen_by &= static_cast<uint32_t>((uint64_t{1} << tile.count) - 1);
  if (seen_by == 0) return {0, 0};
  const int skipped = std::countr_zero(seen_by);
  return {skipped, std::bit_width(seen_by) - skipped};
}

// Keys whose sums are in registers at a time, by two vectors of columns.
constexpr int kSpreadKeys = kManyRegisters ? 12 : 6;

// So many keys, or the 4, 2 or 1 at the end of a block, and which queries of each tile see one of them.
struct KeyGroup {
  int64_t first;  // counted from the block's first key
  int keys;
  const QueryRange* queries;
  int64_t ranges;
};

// Where the sums of a block's keys stand, whether they hold anything yet, and, if no more queries will come to them,
// the gradient that they are added to.
struct Spread {
  float* sums;
  int64_t width;
  bool fresh;
  float* gradient;  // or null
  int64_t stride;

  Spread at(int64_t key, int64_t c) const {
    return {sums + key * width + c, width, fresh, gradient ? gradient + key * stride + c : nullptr, stride};
  }
};

// sums[r][c] += sum_query weights[r][query] rows[query][c] for R keys and NV vectors of columns, over the queries of
// each tile that see one of these keys: dV += E^T dO, dK += dS^T Q.
template <int R, int NV>
HWY_INLINE void spread_rows(F d, const QueryRange* queries, int64_t ranges, const float* weights, const float* rows,
                            const Spread& to) {
  const int64_t width = to.width;
  V acc[R][NV];
  if (to.fresh) {
    unrolled<R * NV>([&](auto i) HEED_INLINED { acc[i / NV][i % NV] = hn::Zero(d); });
  } else {
    unrolled<R * NV>(
        [&](auto i) HEED_INLINED { acc[i / NV][i % NV] = hn::Load(d, to.sums + i / NV * width + i % NV * kLanes); });
  }
  if (to.gradient) {
    for (int r = 0; r < R; ++r) hwy::Prefetch(to.gradient + r * to.stride);
  }
  for (const QueryRange* range = queries; range < queries + ranges; ++range) {
    const float* HWY_RESTRICT w = weights + range->weights_at;
    const float* HWY_RESTRICT x = rows + range->begin * width;
    for (int64_t q = 0; q < range->count; ++q, x += width) {
      V y[NV];
      unrolled<NV>([&](auto n) HEED_INLINED { y[n] = hn::Load(d, x + n * kLanes); });
      unrolled<R>([&](auto r) HEED_INLINED {
        const V e = hn::Set(d, w[r * kTile + q]);
        unrolled<NV>([&](auto n) HEED_INLINED { acc[r][n] = hn::MulAdd(e, y[n], acc[r][n]); });
      });
    }
  }
  unrolled<R * NV>([&](auto i) HEED_INLINED {
    const V sum = acc[i / NV][i % NV];
    if (to.gradient) {
      float* p = to.gradient + i / NV * to.stride + i % NV * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, p), sum), d, p);
    } else {
      hn::Store(sum, d, to.sums + i / NV * width + i % NV * kLanes);
    }
  });
}

// The same for all groups of a block's keys. Columns come first: a few of them, of all queries, stay in L1 while group
// after group passes over them.
template <int NV>
HWY_NOINLINE void spread_columns(F d, const KeyGroup* groups, int64_t count, const float* weights, const float* rows,
                                 int64_t c, const Spread& to) {
  for (const KeyGroup* group = groups; group < groups + count; ++group) {
    const auto spread = [&]<int R>() HEED_INLINED {
      spread_rows<R, NV>(d, group->queries, group->ranges, weights + group->first * kTile, rows + c,
                         to.at(group->first, c));
    };
    switch (group->keys) {
      case kSpreadKeys:
        spread.template operator()<kSpreadKeys>();
        break;
      case 4:
        spread.template operator()<4>();
        break;
      case 2:
        spread.template operator()<2>();
        break;
      default:
        spread.template operator()<1>();
    }
  }
}

inline void spread_groups(F d, const KeyGroup* groups, int64_t count, const float* weights, const float* rows,
                          int64_t columns, const Spread& to) {
  int64_t c = 0;
  for (; c + kLanes < columns; c += 2 * kLanes) spread_columns<2>(d, groups, count, weights, rows, c, to);
  if (c < columns) spread_columns<1>(d, groups, count, weights, rows, c, to);
}

// The same for one key and one tile, where Q or dO hold NaN or infinity and some pairs are hidden: those are left out.
inline void spread_carefully(F d, const Tile& tile, int64_t row, const Hiding& hiding, const float* weights,
                             const float* rows, int64_t width, float* to) {
  const float key = static_cast<float>(tile.first + row);
  for (int64_t q = 0; q < tile.count; ++q) {
    if (key < hiding.low[q] || key >= hiding.high[q]) continue;
    if (hiding.extra && hiding.extra[row * kTile + q] == kHidden) continue;
    const V weight = hn::Set(d, weights[row * kTile + q]);
    for (int64_t c = 0; c < width; c += kLanes) {
      hn::Store(hn::MulAdd(weight, hn::Load(d, rows + q * width + c), hn::Load(d, to + c)), d, to + c);
    }
  }
}

// A row as backward keeps it: whole vectors, zero beyond its numbers.
struct PaddedRow {
  float* data;
  int64_t columns, width;

  // Calls f(vector, at) for the numbers of `from`, stores what it returns, and clears the rest.
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

// Becomes other than zero where a number that was looked at is not finite: x * 0 is NaN then.
struct Finiteness {
  V sum;
  explicit Finiteness(F d) : sum(hn::Zero(d)) {}
  HWY_INLINE void look_at(F d, V x) { sum = hn::MulAdd(x, hn::Zero(d), sum); }
  bool all_finite(F d) const { return hn::AllTrue(d, hn::Eq(sum, hn::Zero(d))); }
};

HWY_INLINE void copy_row(F d, const float* from, const PaddedRow& to, Finiteness& finite) {
  to.fill(d, from, [&](V x, int64_t) HEED_INLINED {
    finite.look_at(d, x);
    return x;
  });
}

// to = factor * from; returns to . other.
HWY_INLINE float scale_and_dot(F d, const float* from, float factor, const float* other, const PaddedRow& to,
                               Finiteness& finite) {
  V product = hn::Zero(d);
  to.fill(d, from, [&](V x, int64_t c) HEED_INLINED {
    const V scaled = hn::Mul(x, hn::Set(d, factor));
    finite.look_at(d, scaled);
    product = hn::MulAdd(scaled, load_part(d, other + c, to.columns - c), product);
    return scaled;
  });
  return hn::GetLane(hn::SumOfLanes(d, product));
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
