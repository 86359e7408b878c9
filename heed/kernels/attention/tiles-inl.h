// SPDX-License-Identifier: Apache-2.0
// The register tiles of the fused kernels. Queries are in SIMD lanes: scores are kept as S^T[key][query], outputs as
// O^T[d][query]. Elements of K and V are broadcast to a vector from where they are in memory; nothing is packed.
#if defined(HEED_KERNELS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_TILES_INL_H_
#undef HEED_KERNELS_ATTENTION_TILES_INL_H_
#else
#define HEED_KERNELS_ATTENTION_TILES_INL_H_
#endif

#include <cfloat>
#include <limits>

#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/plan.h"
#include "heed/kernels/attention/prefetch.h"
#include "heed/kernels/vec-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

constexpr int64_t kTile = 2 * kLanes;                               // queries of a tile: two vectors
constexpr float kHidden = -std::numeric_limits<float>::infinity();  // the score of a masked pair

// Rows of K, or columns of V, of a register tile. There are twice as many accumulators: enough independent FMA chains
// to hide their latency (eight are just enough where every FMA issues on time, which on Intel's cores they do not), and
// few loads for each FMA. As many as there are registers for.
constexpr int kTileRows = kManyRegisters ? 8 : HWY_TARGET == HWY_AVX2 ? 6 : 4;

// Calls f<R>(i) for pieces of R rows from row i on: as many of R = Most as there are, and the remainder in few pieces.
// The last eight are two fours, rather than six and two.
template <int Most, class Function>
HWY_INLINE void in_pieces(int64_t rows, const Function& f) {
  int64_t i = 0;
  for (; rows - i >= Most && (Most != 6 || rows - i != 8); i += Most) f.template operator()<Most>(i);
  if constexpr (Most > 4) {
    for (; rows - i >= 4; i += 4) f.template operator()<4>(i);
  }
  if constexpr (Most > 2) {
    if (rows - i >= 2) {
      f.template operator()<2>(i);
      i += 2;
    }
  }
  if (i < rows) f.template operator()<1>(i);
}

// acc[r][n] = sum_c rows[r][c] * tile[c][n], for R rows and NV vectors of a tile: S = K Q^T, dP = V dO^T.
// The sum runs over c in order, so a score has the same bits whatever tile it was computed in.
template <int R, int NV>
HWY_INLINE void product_rows(F d, Rows rows, int64_t columns, const float* HWY_RESTRICT tile, V (&acc)[R][NV]) {
  const float* HWY_RESTRICT row[R];
  row[0] = rows.data;
  unrolled<R - 1>([&](auto r) HEED_INLINED { row[r + 1] = row[r] + rows.stride; });
  {
    V x[NV];
    unrolled<NV>([&](auto n) HEED_INLINED { x[n] = hn::Load(d, tile + n * kLanes); });
    unrolled<R>([&](auto r) HEED_INLINED {
      const V y = hn::Set(d, row[r][0]);
      unrolled<NV>([&](auto n) HEED_INLINED { acc[r][n] = hn::Mul(y, x[n]); });
    });
  }
  for (int64_t c = 1; c < columns; ++c) {
    V x[NV];
    unrolled<NV>([&](auto n) HEED_INLINED { x[n] = hn::Load(d, tile + c * kTile + n * kLanes); });
    unrolled<R>([&](auto r) HEED_INLINED {
      const V y = hn::Set(d, row[r][c]);
      unrolled<NV>([&](auto n) HEED_INLINED { acc[r][n] = hn::MulAdd(y, x[n], acc[r][n]); });
    });
  }
}

// The maxima of a tile are integers, which exp2_less subtracts while it rounds. Not those out of its range: of rows
// that have seen no key yet, of logits in the millions, NaN. Those are subtracted from the scores here, and become 0.
// It is done lane by lane: a query's result does not depend on the others of its tile.
template <int NV>
HWY_NOINLINE void subtract_far(F d, int64_t rows, V (&max)[NV], float* scores) {
  for (int n = 0; n < NV; ++n) {
    const auto near = hn::Lt(hn::Abs(max[n]), hn::Set(d, kExp2Whole));
    const V far = hn::IfThenZeroElse(near, max[n]);
    max[n] = hn::IfThenElseZero(near, max[n]);
    for (int64_t i = 0; i < rows; ++i) {
      float* p = scores + i * kTile + n * kLanes;
      hn::Store(hn::Sub(hn::Load(d, p), far), d, p);
    }
  }
}

template <int NV>
HWY_INLINE bool all_near(F d, const V (&max)[NV]) {
  bool near = true;
  for (int n = 0; n < NV; ++n) near &= hn::AllTrue(d, hn::Lt(hn::Abs(max[n]), hn::Set(d, kExp2Whole)));
  return near;
}

// The lanes whose query sees this key.
HWY_INLINE hn::Mask<F> seen(F d, int64_t key, const float* low, const float* high) {
  const V at = hn::Set(d, static_cast<float>(key));
  return hn::And(hn::Ge(at, hn::Load(d, low)), hn::Lt(at, hn::Load(d, high)));
}

// What an accumulator starts from: zero, its old value, or its old value times a factor for each query.
enum class Before { dropped, kept, scaled };

template <Before B>
HWY_INLINE V before(F d, const float* out, const float* factor) {
  if constexpr (B == Before::dropped) return hn::Zero(d);
  const V old = hn::Load(d, out);
  return B == Before::scaled ? hn::Mul(hn::Load(d, factor), old) : old;
}

// A weighted sum of the rows of keys, out[c][n] = before + sum_key rows[key][c] * weights[key][n]: O = P V, dQ = dS K.
struct WeightedSum {
  Rows rows;
  int64_t keys, columns;
  const float* weights;  // [key][query]
  const float* factor;   // [query], of what `out` held before; null where it is not scaled
  float* out;            // [column][query]
};

// C columns from `first` on.
template <int C, int NV, Before B>
HWY_INLINE void weighted_sum_columns(F d, const WeightedSum& sum, int64_t first) {
  const float* HWY_RESTRICT weights = sum.weights;
  const float* HWY_RESTRICT factor = sum.factor;
  float* HWY_RESTRICT out = sum.out + first * kTile;
  const int64_t keys = sum.keys, stride = sum.rows.stride;
  V acc[C][NV];
  unrolled<C * NV>([&](auto i) HEED_INLINED {
    acc[i / NV][i % NV] = before<B>(d, out + i / NV * kTile + i % NV * kLanes, factor + i % NV * kLanes);
  });
  const float* HWY_RESTRICT row = sum.rows.data + first;
  for (int64_t key = 0; key < keys; ++key, row += stride, weights += kTile) {
    V w[NV];
    unrolled<NV>([&](auto n) HEED_INLINED { w[n] = hn::Load(d, weights + n * kLanes); });
    unrolled<C>([&](auto c) HEED_INLINED {
      const V y = hn::Set(d, row[c]);
      unrolled<NV>([&](auto n) HEED_INLINED { acc[c][n] = hn::MulAdd(y, w[n], acc[c][n]); });
    });
  }
  unrolled<C * NV>([&](auto i)
                       HEED_INLINED { hn::Store(acc[i / NV][i % NV], d, out + i / NV * kTile + i % NV * kLanes); });
}

// All columns, with a step of the prefetcher before each register tile. The struct is passed by value: through a
// reference the compiler would have to load its fields again after every store.
template <int NV, Before B>
HWY_NOINLINE void weighted_sum(F d, WeightedSum sum, Prefetcher& prefetcher) {
  in_pieces<kTileRows>(sum.columns, [&]<int C>(int64_t c) HWY_ATTR {
    if constexpr (C == kTileRows) prefetcher.step();
    weighted_sum_columns<C, NV, B>(d, sum, c);
  });
}

// Calls f<NV, B>() for a tile of so many vectors.
template <class Function>
HWY_INLINE void with_before(int vectors, Before before, const Function& f) {
  const auto of = [&]<int NV>() HWY_ATTR {
    switch (before) {
      case Before::dropped:
        return f.template operator()<NV, Before::dropped>();
      case Before::kept:
        return f.template operator()<NV, Before::kept>();
      case Before::scaled:
        return f.template operator()<NV, Before::scaled>();
    }
  };
  vectors == 2 ? of.template operator()<2>() : of.template operator()<1>();
}

// Which pairs of a tile are masked: by each query's range of visible keys, and by terms that are -inf.
struct Hiding {
  const float *low, *high;  // [query]
  const float* extra;       // [key][query], from the tile's first key on; null: none

  // The lanes of vector n that see the key; `row` counts keys from the tile's first.
  HWY_INLINE hn::Mask<F> seen_by(F d, int64_t key, int64_t row, int64_t n) const {
    const auto mask = seen(d, key, low + n, high + n);
    if (!extra) return mask;
    return hn::AndNot(hn::Eq(hn::Load(d, extra + row * kTile + n), hn::Set(d, kHidden)), mask);
  }
};

// The same where rows hold NaN or infinity and a weight is zero because its key is masked: a masked key is skipped, not
// multiplied by zero. `first_key` is the index of row 0. Rare, so simple.
template <int NV, Before B>
HWY_NOINLINE void weighted_sum_carefully(F d, const WeightedSum& sum, int64_t first_key, const Hiding& hiding) {
  for (int64_t n = 0; n < NV * kLanes; n += kLanes) {
    for (int64_t c = 0; c < sum.columns; ++c) {
      float* out = sum.out + c * kTile + n;
      V acc = before<B>(d, out, sum.factor + n);
      for (int64_t i = 0; i < sum.keys; ++i) {
        const V added = hn::MulAdd(hn::Set(d, sum.rows.row(i)[c]), hn::Load(d, sum.weights + i * kTile + n), acc);
        acc = hn::IfThenElse(hiding.seen_by(d, first_key + i, i, n), added, acc);
      }
      hn::Store(acc, d, out);
    }
  }
}

// Prefetches a row that is soon read or written.
template <class T>
HWY_INLINE void prefetch_row(const T* row, int64_t columns) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t c = 0; c < columns; c += kLine) hwy::Prefetch(row + c);
}

// The same for rows that the hardware prefetcher would not follow in time.
HWY_INLINE void prefetch_rows(Matrix x) {
  for (int64_t i = 0; i < x.count; ++i) prefetch_row(x.rows.row(i), x.columns);
}

// Up to kLanes rows into the lanes of a tile, times a factor for each row; lanes without a row are zero. `stage` is
// scratch for kLanes rows.
inline void rows_to_lanes(F d, Matrix from, V factor, float* tile, float* stage) {
  Rows rows = from.rows;
  if (from.count < kLanes) {
    std::memset(stage, 0, static_cast<size_t>(kLanes * from.columns) * sizeof(float));
    copy_rows(from, {stage, from.columns});
    rows = {stage, from.columns};
  }
  transpose_in(d, rows, from.columns, factor, {tile, kTile});
}

// The inverse: the first rows of a tile's lanes to memory.
inline void lanes_to_rows(F d, const float* tile, V factor, MatrixOf<float> to, float* stage) {
  if (to.count >= kLanes) return transpose_out(d, {tile, kTile}, to.columns, factor, to.rows);
  transpose_out(d, {tile, kTile}, to.columns, factor, {stage, to.columns});
  copy_rows({{stage, to.columns}, to.count, to.columns}, to.rows);
}

// The keys that any of a tile's queries sees, and those that all of them see; and those that any of a vector's sees.
struct TileRange {
  int64_t any_begin, any_end, all_begin, all_end;
  KeyRange vector[2];
};

// A tile of queries, as it advances over the key blocks.
struct Tile {
  TileRange keys;
  int64_t count;        // queries
  int64_t first, rows;  // the keys of the current block that some of its queries see: rows of S^T
  int vectors;          // 1 where its queries fit into one vector
  bool masked;          // some of these keys are masked for some of its queries
  bool started;         // has been through a key block

  // Rows [clear_begin, clear_end) are visible to all queries.
  int64_t clear_begin() const { return std::clamp<int64_t>(keys.all_begin - first, 0, rows); }
  int64_t clear_end() const { return std::clamp<int64_t>(keys.all_end - first, clear_begin(), rows); }

  // The first and last rows of a masked tile may be visible to one of its two vectors alone: under the diagonal of a
  // causal mask, only the second half of the queries sees the last keys.
  struct Edges {
    int64_t lead, tail;            // rows before `lead`, and from `tail` on
    int lead_vector, tail_vector;  // the vector that sees them
  };
  Edges edges() const {
    if (!masked || vectors < 2) return {0, rows, 0, 0};
    const auto row = [&](int64_t key) { return std::clamp<int64_t>(key - first, 0, rows); };
    const int64_t begin[] = {row(keys.vector[0].begin), row(keys.vector[1].begin)};
    const int64_t end[] = {row(keys.vector[0].end), row(keys.vector[1].end)};
    const int64_t lead = std::max(begin[0], begin[1]);
    return {lead, std::max(lead, std::min(end[0], end[1])), begin[0] < begin[1] ? 0 : 1, end[0] > end[1] ? 0 : 1};
  }

  // Advances to the block of `block_keys` keys from `block_first` on.
  void enter(int64_t block_first, int64_t block_keys) {
    first = std::max(block_first, keys.any_begin);
    const int64_t last = std::min(block_first + block_keys, keys.any_end);
    rows = std::max<int64_t>(0, last - first);
    masked = rows > 0 && (first < keys.all_begin || last > keys.all_end);
  }
};

// `count` queries of a head from t on.
struct QueryBlock {
  int64_t b, h, t, count;
};

// [query]: the range of keys [low, high) that each query sees.
struct KeyLimits {
  float *low, *high;
  KeyLimits from(int64_t i) const { return {low + i, high + i}; }
};

// The ranges of a tile's queries. `limits` gets each query's own; lanes without a query repeat the last one's.
inline TileRange tile_range(const Visibility& visible, const QueryBlock& queries, KeyLimits limits) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  TileRange r{kNever, 0, 0, kNever, {{kNever, 0}, {kNever, 0}}};
  for (int64_t i = 0; i < kTile; ++i) {
    const KeyRange keys = visible.row(queries.b, queries.t + std::min(i, queries.count - 1));
    limits.low[i] = static_cast<float>(keys.begin);
    limits.high[i] = static_cast<float>(keys.end);
    if (!keys.empty()) {
      r.any_begin = std::min(r.any_begin, keys.begin);
      r.any_end = std::max(r.any_end, keys.end);
      KeyRange& vector = r.vector[i / kLanes];
      vector = {std::min(vector.begin, keys.begin), std::max(vector.end, keys.end)};
    }
    r.all_begin = std::max(r.all_begin, keys.begin);
    r.all_end = std::min(r.all_end, keys.end);
  }
  if (r.any_begin > r.any_end) r.any_begin = r.any_end = 0;
  return r;
}

// Sets up the tiles of a block of queries, each limited to the keys in `within`; returns the keys that some of the
// queries see. `limits` is not written where nothing reads it: with no mask, and no stages in either direction.
inline KeyRange start_tiles(const AttentionPlan::Details& plan, const QueryBlock& queries, KeyRange within,
                            KeyLimits limits, Tile* tiles) {
  KeyRange range{within.end, within.begin};
  for (int64_t at = 0; at < queries.count; at += kTile) {
    Tile& tile = tiles[at / kTile];
    tile.count = std::min(kTile, queries.count - at);
    tile.vectors = tile.count > kLanes ? 2 : 1;
    tile.started = false;
    if (plan.visibility.everything()) {
      const KeyRange all{0, plan.shape.S};
      tile.keys = {all.begin, all.end, all.begin, all.end, {all, all}};
      if (!plan.stages.plain_backward()) {
        std::fill_n(limits.low + at, kTile, 0.0f);
        std::fill_n(limits.high + at, kTile, static_cast<float>(plan.shape.S));
      }
    } else {
      const QueryBlock its{queries.b, queries.h, queries.t + at, tile.count};
      tile.keys = tile_range(plan.visibility, its, limits.from(at));
    }
    tile.keys.any_begin = std::max(tile.keys.any_begin, within.begin);
    tile.keys.any_end = std::min(tile.keys.any_end, within.end);
    if (tile.keys.any_begin < tile.keys.any_end) {
      range.begin = std::min(range.begin, tile.keys.any_begin);
      range.end = std::max(range.end, tile.keys.any_end);
    }
  }
  return range;
}

// Rows `keys` of K, or of V, of one key head.
struct KvRows {
  const KvView& kv;
  int64_t b, h;
  KeyRange keys;

  // From row `first` on, as they are stored; they follow each other as far as KvView::run says.
  template <class T>
  RowsOf<const T> stored(int64_t first) const {
    return {kv.row<T>(b, h, first), kv.strides()[2]};
  }
};

template <class T>
void gather_rows(F d, const KvRows& from, float* to) {
  const int64_t columns = from.kv.shape(3), end = from.keys.end;
  for (int64_t first = from.keys.begin, run; first < end; first += run, to += run * columns) {
    run = from.kv.run(first, end - first);
    widen_rows<T>(d, {from.stored<T>(first), run, columns}, {to, columns});
  }
}

// The rows in f32: where they are in memory, or gathered into `block` where that is not null, as they have to be where
// they are stored in 16 bits or paged.
inline Rows kv_rows(F d, const KvRows& from, float* block) {
  if (!block) return from.stored<float>(from.keys.begin);
  switch (from.kv.dtype()) {
    case DType::f32:
      gather_rows<float>(d, from, block);
      break;
    case DType::bf16:
      gather_rows<BFloat16>(d, from, block);
      break;
    case DType::f16:
      gather_rows<Float16>(d, from, block);
      break;
    case DType::f64:
    case DType::i32:
    case DType::i8:
      assert(false);  // no KvView has these
  }
  return {block, from.kv.shape(3)};
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
