// The register tiles of the fused kernels. Queries stand in SIMD lanes: scores are kept as S^T[key][query], outputs as
// O^T[d][query]. K and V are read as they lie, one number at a time, spread over a vector; nothing is packed.
#if defined(HEED_KERNELS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_TILES_INL_H_
#undef HEED_KERNELS_ATTENTION_TILES_INL_H_
#else
#define HEED_KERNELS_ATTENTION_TILES_INL_H_
#endif

#include <cfloat>
#include <limits>

#include "heed/kernels/attention/ahead.h"
#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/plan.h"
#include "heed/kernels/vec-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

constexpr int64_t kTile = 2 * kLanes;  // queries: two vectors

// Rows of K, or columns of V, that a product takes at a time: twice as many sums, so that none waits for another (eight
// are just enough where every multiply-add starts on time, which Intel's cores do not do), and few loads for each
// multiply-add. As many as there are registers for.
constexpr int kTileRows = kManyRegisters ? 8 : HWY_TARGET == HWY_AVX2 ? 6 : 4;

// Calls f<R>(i) for pieces of R rows, from row i on: as many of R = Most as there are, and the rest in few pieces. The
// last eight are two fours, rather than six and two.
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

// Rows of a matrix in memory.
template <class T>
struct RowsOf {
  const T* data;
  int64_t stride;
  const T* row(int64_t i) const { return data + i * stride; }
};
using Rows = RowsOf<float>;

// acc[r][n] = sum_c rows[r][c] * columns[c][n], for R rows and NV vectors of a tile: S = K Q^T, dP = V dO^T.
// The sum runs over c in order, so a score has the same bits whatever tile it was made in.
template <int R, int NV>
HWY_INLINE void product_rows(F d, const float* HWY_RESTRICT rows, int64_t stride, int64_t columns,
                             const float* HWY_RESTRICT tile, V (&acc)[R][NV]) {
  const float* HWY_RESTRICT row[R];
  row[0] = rows;
  unrolled<R - 1>([&](auto r) HEED_INLINED { row[r + 1] = row[r] + stride; });
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

// The maxima of a tile are whole numbers, which exp2_less takes off while it rounds. Not those beyond its reach: of
// rows that have seen nothing yet, of logits in the millions, NaN. They are taken off the scores here, and become 0;
// what becomes of a query does not depend on the others of its tile.
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

// What becomes of what an accumulator held before: dropped, kept, or kept times a factor a query.
enum class Before { dropped, kept, scaled };

template <Before B>
HWY_INLINE V before(F d, const float* out, const float* factor) {
  if constexpr (B == Before::dropped) return hn::Zero(d);
  const V old = hn::Load(d, out);
  return B == Before::scaled ? hn::Mul(hn::Load(d, factor), old) : old;
}

// out[c][n] = before + sum_key rows[key][c] * weights[key][n], for C columns: O = P V, dQ = dS K.
template <int C, int NV, Before B>
HWY_INLINE void mix_columns(F d, Rows rows, int64_t keys, const float* HWY_RESTRICT weights,
                            const float* HWY_RESTRICT factor, float* HWY_RESTRICT out) {
  V acc[C][NV];
  unrolled<C * NV>([&](auto i) HEED_INLINED {
    acc[i / NV][i % NV] = before<B>(d, out + i / NV * kTile + i % NV * kLanes, factor + i % NV * kLanes);
  });
  const float* HWY_RESTRICT row = rows.data;
  for (int64_t key = 0; key < keys; ++key, row += rows.stride, weights += kTile) {
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

// mix_columns over all columns of a matrix. Between them, ahead.some() may ask for other memory.
template <int NV, Before B>
HWY_NOINLINE void mix(F d, Rows rows, int64_t keys, int64_t columns, const float* weights, const float* factor,
                      float* out, Ahead& ahead) {
  in_pieces<kTileRows>(columns, [&]<int C>(int64_t c) HWY_ATTR {
    if constexpr (C == kTileRows) ahead.some();
    mix_columns<C, NV, B>(d, {rows.data + c, rows.stride}, keys, weights, factor, out + c * kTile);
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

// Which pairs of a tile are hidden: by its queries' runs of visible keys, and by rows of terms where -inf says so.
struct Hiding {
  const float *low, *high;  // of each query
  const float* extra;       // [key][query], from the tile's first key on; null: none

  // The lanes of vector n that see the key; `row` counts keys from the tile's first.
  HWY_INLINE hn::Mask<F> seen_by(F d, int64_t key, int64_t row, int64_t n) const {
    const auto mask = seen(d, key, low + n, high + n);
    if (!extra) return mask;
    const V hidden = hn::Set(d, -std::numeric_limits<float>::infinity());
    return hn::AndNot(hn::Eq(hn::Load(d, extra + row * kTile + n), hidden), mask);
  }
};

// The same where a weight may be zero only because its key is hidden, and rows hold NaN or infinity: a hidden key is
// left out instead of being multiplied by zero. Rare, so plain.
template <int NV, Before B>
HWY_NOINLINE void mix_carefully(F d, Rows rows, int64_t first_key, int64_t keys, int64_t columns, const float* weights,
                                const float* factor, const Hiding& hiding, float* out) {
  for (int64_t n = 0; n < NV * kLanes; n += kLanes) {
    for (int64_t c = 0; c < columns; ++c) {
      V acc = before<B>(d, out + c * kTile + n, factor + n);
      for (int64_t i = 0; i < keys; ++i) {
        const V mixed = hn::MulAdd(hn::Set(d, rows.row(i)[c]), hn::Load(d, weights + i * kTile + n), acc);
        acc = hn::IfThenElse(hiding.seen_by(d, first_key + i, i, n), mixed, acc);
      }
      hn::Store(acc, d, out + c * kTile + n);
    }
  }
}

// Asks for a row that is soon read or written.
template <class T>
HWY_INLINE void prefetch_row(const T* row, int64_t columns) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t c = 0; c < columns; c += kLine) hwy::Prefetch(row + c);
}

// The same for rows that follow no order which the prefetchers would know in time.
HWY_INLINE void prefetch_rows(Rows rows, int64_t count, int64_t columns) {
  for (int64_t i = 0; i < count; ++i) prefetch_row(rows.row(i), columns);
}

// Up to kLanes rows into the lanes of a tile, times a factor a row; lanes without a row are zero.
inline void rows_to_lanes(F d, Rows rows, int64_t count, int64_t columns, V factor, float* tile, float* stage) {
  if (count < kLanes) {
    std::memset(stage, 0, static_cast<size_t>(kLanes * columns) * sizeof(float));
    copy_rows(rows.data, rows.stride, count, columns, stage, columns);
    rows = {stage, columns};
  }
  transpose_in(d, rows.data, rows.stride, columns, factor, tile, kTile);
}

// The way back, count rows of it.
inline void lanes_to_rows(F d, const float* tile, int64_t count, int64_t columns, V factor, float* rows, int64_t stride,
                          float* stage) {
  if (count >= kLanes) return transpose_out(d, tile, kTile, columns, factor, rows, stride);
  transpose_out(d, tile, kTile, columns, factor, stage, columns);
  copy_rows(stage, columns, count, columns, rows, stride);
}

// Which keys some of a tile's queries see, and which all of them see; and those that some of a vector's queries see.
struct TileRange {
  int64_t any_begin, any_end, all_begin, all_end;
  KeyRange vector[2];
};

// One tile of queries on its way through the key blocks.
struct Tile {
  TileRange keys;
  int64_t count;        // queries
  int64_t first, rows;  // the keys of the current block that some of its queries see
  int vectors;          // 1 where its queries fit one vector
  bool masked;          // some of these keys are hidden from some of its queries
  bool started;         // has seen a key block

  // Of these keys, all queries see those from clear_begin to clear_end, counted from the first.
  int64_t clear_begin() const { return std::clamp<int64_t>(keys.all_begin - first, 0, rows); }
  int64_t clear_end() const { return std::clamp<int64_t>(keys.all_end - first, clear_begin(), rows); }

  // At the ends of a masked tile there are keys that only one of its two vectors has to do with: as under the diagonal
  // of a causal mask, where the second half of the queries sees the last keys alone.
  struct Edges {
    int64_t lead, tail;            // rows before `lead`, and from `tail` on
    int lead_vector, tail_vector;  // whose they are
  };
  Edges edges() const {
    if (!masked || vectors < 2) return {0, rows, 0, 0};
    const auto row = [&](int64_t key) { return std::clamp<int64_t>(key - first, 0, rows); };
    const int64_t begin[] = {row(keys.vector[0].begin), row(keys.vector[1].begin)};
    const int64_t end[] = {row(keys.vector[0].end), row(keys.vector[1].end)};
    const int64_t lead = std::max(begin[0], begin[1]);
    return {lead, std::max(lead, std::min(end[0], end[1])), begin[0] < begin[1] ? 0 : 1, end[0] > end[1] ? 0 : 1};
  }

  // Moves on to the block of `block_keys` keys from `block_first` on.
  void enter(int64_t block_first, int64_t block_keys) {
    first = std::max(block_first, keys.any_begin);
    const int64_t last = std::min(block_first + block_keys, keys.any_end);
    rows = std::max<int64_t>(0, last - first);
    masked = rows > 0 && (first < keys.all_begin || last > keys.all_end);
  }
};

// Ranges of the tile's queries t0 .. t0 + count; low and high get each query's own, and lanes without a query the last
// one's.
inline TileRange tile_range(const Visibility& visible, int64_t b, int64_t t0, int64_t count, float* low, float* high) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  TileRange r{kNever, 0, 0, kNever, {{kNever, 0}, {kNever, 0}}};
  for (int64_t i = 0; i < kTile; ++i) {
    const KeyRange keys = visible.row(b, t0 + std::min(i, count - 1));
    low[i] = static_cast<float>(keys.begin);
    high[i] = static_cast<float>(keys.end);
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

// Sets up the tiles of `queries` queries from t0 on, each limited to the keys in `within`; returns the keys that some
// of them see.
inline KeyRange start_tiles(const AttentionPlan::Details& plan, int64_t b, int64_t t0, int64_t queries, KeyRange within,
                            float* low, float* high, Tile* tiles) {
  KeyRange range{within.end, within.begin};
  for (int64_t i = 0; i * kTile < queries; ++i) {
    Tile& tile = tiles[i];
    tile.count = std::min(kTile, queries - i * kTile);
    tile.vectors = tile.count > kLanes ? 2 : 1;
    tile.started = false;
    if (plan.visibility.everything()) {
      const KeyRange all{0, plan.shape.S};
      tile.keys = {all.begin, all.end, all.begin, all.end, {all, all}};
      if (!plan.stages.plain()) {
        std::fill_n(low + i * kTile, kTile, 0.0f);
        std::fill_n(high + i * kTile, kTile, static_cast<float>(plan.shape.S));
      }
    } else {
      tile.keys = tile_range(plan.visibility, b, t0 + i * kTile, tile.count, low + i * kTile, high + i * kTile);
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

// Rows from `first` on, as they are stored; they follow each other as far as KvView::run says.
template <class T>
RowsOf<T> stored_rows(const KvView& kv, int64_t b, int64_t h, int64_t first) {
  return {kv.row<T>(b, h, first), kv.strides()[2]};
}

template <class T>
void gather_rows(F d, const KvView& kv, int64_t b, int64_t h, int64_t first, int64_t count, float* block) {
  const int64_t columns = kv.shape(3);
  for (int64_t end = first + count, run; first < end; first += run, block += run * columns) {
    run = kv.run(first, end - first);
    const RowsOf<T> from = stored_rows<T>(kv, b, h, first);
    widen_rows(d, from.data, from.stride, run, columns, block, columns);
  }
}

// Rows of keys or values [first, first + count) of one head in f32: where they lie, or gathered into `block`, as they
// have to be where they are stored in 16 bits or in blocks.
inline Rows kv_rows(F d, const KvView& kv, int64_t b, int64_t h, int64_t first, int64_t count, float* block,
                    bool gather) {
  if (!gather) return stored_rows<float>(kv, b, h, first);
  switch (kv.dtype()) {
    case DType::f32:
      gather_rows<float>(d, kv, b, h, first, count, block);
      break;
    case DType::bf16:
      gather_rows<BFloat16>(d, kv, b, h, first, count, block);
      break;
    case DType::f16:
      gather_rows<Float16>(d, kv, b, h, first, count, block);
      break;
    case DType::f64:
    case DType::i32:
      assert(false);  // no KvView has these
  }
  return {block, kv.shape(3)};
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
