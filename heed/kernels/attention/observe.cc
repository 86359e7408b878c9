// SPDX-License-Identifier: Apache-2.0
// Observers, in a second pass over the scores, queries in lanes. A task owns a chunk of keys; for one block of queries
// after the other,
//   S^T <- K Q^T, softcap, ALiBi, bias;  W^T <- 2^(S - m) / l
// A key's weights are summed over tiles, then over lanes: the attention that it receives. For a map, W^T is pooled over
// the keys of a column while queries are in lanes; only that is transposed and accumulated into the rows of the map.
#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/attention/observe.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/attention/additive-inl.h"
#include "heed/kernels/attention/flush_denormals.h"
#include "heed/kernels/attention/observe_blocks.h"
#include "heed/kernels/attention/stages-inl.h"
#include "heed/kernels/attention/tiles-inl.h"

#ifndef HEED_KERNELS_ATTENTION_OBSERVE_CC_
#define HEED_KERNELS_ATTENTION_OBSERVE_CC_
namespace heed::kernels {

// The arguments of a call.
struct ObserveCall {
  const ObservationPlan::Details& plan;
  const AttentionInputs& in;
  const View<const float, 4>& stats;
  const AttentionObservations& to;
};

}  // namespace heed::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

enum class Score { product, additive };

template <int R, int NV, Score kScore>
HWY_INLINE void raw_score_rows(F d, Rows k, int64_t D, const float* q, const float* w, float* scores) {
  V s[R][NV];
  if constexpr (kScore == Score::additive) {
    additive_rows<R, NV>(d, k, D, q, w, s);
  } else {
    product_rows<R, NV>(d, k, D, q, s);
  }
  for (int i = 0; i < R * NV; ++i) hn::Store(s[i / NV][i % NV], d, scores + i / NV * kTile + i % NV * kLanes);
}

// S^T for the rows of k, before any stage.
template <int NV, Score kScore>
HWY_NOINLINE void raw_scores(F d, Matrix k, const float* q, const float* w, float* scores) {
  in_pieces<kScore == Score::additive ? 2 : kTileRows>(k.count, [&]<int R>(int64_t i) HWY_ATTR {
    raw_score_rows<R, NV, kScore>(d, k.rows.from(i), k.columns, q, w, scores + i * kTile);
  });
}

// The data of the stages of a tile, up to `stage`.
struct ObservedStages {
  const HeadStages& head;
  const float *position, *extra;  // see StageScratch
  AttentionStage stage;
};

template <int R, int NV>
HWY_INLINE void stage_rows(F d, const ObservedStages& to, int64_t key, const float* extra, float* scores) {
  V s[R * NV];
  for (int i = 0; i < R * NV; ++i) s[i] = hn::Load(d, scores + i / NV * kTile + i % NV * kLanes);
  cap_scores(d, to.head, s);
  if (to.stage != AttentionStage::capped) add_terms<R, NV>(d, to.head, key, to.position, extra, s);
  for (int i = 0; i < R * NV; ++i) hn::Store(s[i], d, scores + i / NV * kTile + i % NV * kLanes);
}

// Softcap, ALiBi and bias. Pairs outside the ranges of visible keys are not masked here.
template <int NV>
HWY_NOINLINE void tile_stages(F d, const Tile& tile, const ObservedStages& to, float* scores) {
  int64_t i = 0;
  for (; i + 2 <= tile.rows; i += 2) stage_rows<2, NV>(d, to, tile.first + i, to.extra + i * kTile, scores + i * kTile);
  if (i < tile.rows) stage_rows<1, NV>(d, to, tile.first + i, to.extra + i * kTile, scores + i * kTile);
}

inline void mask_scores(F d, const Tile& tile, const Hiding& hiding, float* scores) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    for (int64_t n = 0; n < tile.vectors * kLanes; n += kLanes) {
      float* p = scores + i * kTile + n;
      const auto seen = hiding.seen_by(d, tile.first + i, i, n);
      hn::Store(hn::IfThenElse(seen, hn::Load(d, p), hn::Set(d, kHidden)), d, p);
    }
  }
}

// [query]: the softmax of a tile's queries, from the row statistics of forward.
struct TileSoftmax {
  const float *max, *inverse;
  Hiding hiding;
};

// R rows of scores become weights, and are accumulated into what their keys receive, lane by lane. Masked ones are set
// to 0 at the very end: where a query's sum is NaN, nothing else would make them 0.
template <int R, int NV, bool kHides>
HWY_INLINE void weigh_rows(F d, const Tile& tile, const TileSoftmax& of, int64_t row, float* scores, float* received) {
  V w[R * NV];
  for (int i = 0; i < R * NV; ++i) {
    const int64_t n = i % NV * kLanes;
    w[i] = hn::Sub(hn::Load(d, scores + i / NV * kTile + n), hn::Load(d, of.max + n));
  }
  exp2(d, w);
  for (int i = 0; i < R * NV; ++i) {
    const int64_t n = i % NV * kLanes, r = i / NV;
    w[i] = hn::Mul(w[i], hn::Load(d, of.inverse + n));
    if constexpr (kHides) {
      w[i] = hn::IfThenElseZero(of.hiding.seen_by(d, tile.first + row + r, row + r, n), w[i]);
    }
    hn::Store(w[i], d, scores + r * kTile + n);
  }
  for (int r = 0; r < R; ++r) {
    const V both = NV == 2 ? hn::Add(w[r * NV], w[r * NV + NV - 1]) : w[r];
    hn::Store(hn::Add(hn::Load(d, received + r * kLanes), both), d, received + r * kLanes);
  }
}

template <int NV, bool kHides>
HWY_NOINLINE void observed_weights(F d, const Tile& tile, const TileSoftmax& of, float* scores, float* received) {
  int64_t i = 0;
  for (; i + 2 <= tile.rows; i += 2)
    weigh_rows<2, NV, kHides>(d, tile, of, i, scores + i * kTile, received + i * kLanes);
  if (i < tile.rows) weigh_rows<1, NV, kHides>(d, tile, of, i, scores + i * kTile, received + i * kLanes);
}

// The keys of a map's columns, whose sizes differ by at most one.
struct ColumnKeys {
  Pools pools;
  float narrow, wide;  // 1 / the number of keys in a column

  explicit ColumnKeys(const Pools& keys)
      : pools(keys), narrow(1.0f / static_cast<float>(keys.each)), wide(1.0f / static_cast<float>(keys.each + 1)) {}
  float share(int64_t size) const { return size == pools.each ? narrow : wide; }
};

// [column][query]: pooled weights of a tile.
struct PooledColumns {
  float *sums, *maxima;
};

// The sum, times share, and the maximum over `keys` rows of weights; a column may have more keys in other blocks.
template <int NV>
HWY_INLINE void pool_keys(F d, const float* weights, int64_t keys, float share, PooledColumns to) {
  V sum[NV], max[NV];
  for (int n = 0; n < NV; ++n) sum[n] = max[n] = hn::Load(d, weights + n * kLanes);
  for (int64_t i = 1; i < keys; ++i) {
    for (int n = 0; n < NV; ++n) {
      const V w = hn::Load(d, weights + i * kTile + n * kLanes);
      sum[n] = hn::Add(sum[n], w);
      max[n] = hn::Max(max[n], w);
    }
  }
  for (int n = 0; n < NV; ++n) {
    hn::Store(hn::Mul(sum[n], hn::Set(d, share)), d, to.sums + n * kLanes);
    // A maximum may lose a NaN; a sum does not.
    hn::Store(hn::IfThenElse(hn::Eq(sum[n], sum[n]), max[n], sum[n]), d, to.maxima + n * kLanes);
  }
}

// The weights of a tile, pooled over the keys of each column, from column `first` on. Returns the number of columns.
template <int NV>
HWY_NOINLINE int64_t pool_columns(F d, const ColumnKeys& of, const Tile& tile, int64_t first, const float* weights,
                                  PooledColumns to) {
  int64_t columns = 0, begin = of.pools.begin(first);
  for (int64_t row = 0; row < tile.rows; ++columns) {
    const int64_t end = of.pools.end(first + columns), last = std::min(end - tile.first, tile.rows);
    pool_keys<NV>(d, weights + row * kTile, last - row, of.share(end - begin),
                  {to.sums + columns * kTile, to.maxima + columns * kTile});
    row = last;
    begin = end;
  }
  return columns;
}

enum class Pooling { mean, max };

// Accumulates rows of cells, one for each query, into rows[query] of the map. NaN stays.
template <Pooling P>
HWY_NOINLINE void accumulate_cells(F d, Matrix from, const int64_t* rows, RowsOf<float> map) {
  const int64_t columns = from.columns;
  for (int64_t i = 0; i < from.count; ++i) {
    const float* cells = from.rows.row(i);
    float* to = map.row(rows[i]);
    int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) {
      const V x = hn::LoadU(d, cells + c), old = hn::LoadU(d, to + c);
      const auto larger = hn::Or(hn::Gt(x, old), hn::IsNaN(x));
      hn::StoreU(P == Pooling::mean ? hn::Add(old, x) : hn::IfThenElse(larger, x, old), d, to + c);
    }
    for (; c < columns; ++c) {
      const float x = cells[c], old = to[c];
      to[c] = P == Pooling::mean ? old + x : x > old || std::isnan(x) ? x : old;
    }
  }
}

// One chunk of keys of one head, for all queries.
class ObserveChunk {
 public:
  ObserveChunk(const ObserveCall& call, int64_t b, int64_t h, int64_t chunk, float* scratch)
      : plan_(call.plan.scores),
        s_(plan_.shape),
        in_(call.in),
        stats_(call.stats),
        to_(call.to),
        b_(b),
        h_(h),
        hk_(h / (s_.Hq / s_.Hk)),
        row_pools_(query_pools(s_, to_)),
        column_keys_(key_pools(s_, to_)),
        mem_(plan_, scratch),
        stages_(plan_, in_, b, h) {
    const Pools chunks(column_keys_.pools.count, call.plan.key_chunks);
    columns_ = {chunks.begin(chunk), chunks.end(chunk)};
    keys_ = {column_keys_.pools.begin(columns_.begin), column_keys_.pools.begin(columns_.end)};
    if (wants_map(to_)) {
      const int64_t N = map_of(to_).shape(3), made = column_keys_.pools.count;
      own_ = {ceil_div(columns_.begin * N, made), ceil_div(columns_.end * N, made)};
    }
  }

  void run() {
    if (to_.received || wants_map(to_)) pool();
    for (int64_t i = 0, run; to_.rows && i < std::ssize(to_.queries); i += run) {
      run = 1;
      const int64_t* query = to_.queries.data() + i;
      while (run < kTile && i + run < std::ssize(to_.queries) && query[run] == query[0] + run) ++run;
      show_rows(i, query[0], run);
    }
  }

 private:
  // The attention that keys receive, and the map.
  void pool() {
    for (int64_t s = keys_.begin; to_.received && s < keys_.end; ++s) to_.received(b_, h_, s) = 0;
    for_maps([&](const View<float, 4>& map, Pooling) {
      for (int64_t i = 0; i < map.shape(2); ++i) {
        std::fill_n(map.at(b_, h_, i, own_.begin), own_.end - own_.begin, 0.0f);
      }
    });
    const int64_t block = key_block(s_);
    for (int64_t t0 = 0; t0 < s_.T; t0 += plan_.blocking.queries) {
      const KeyRange range = begin(t0);
      for (int64_t first = range.begin; first < range.end; first += block) {
        step(t0, first, std::min(block, range.end - first));
      }
    }
    for_maps([&](const View<float, 4>& map, Pooling) { stretch(map); });
  }

  template <class Body>
  void for_maps(const Body& body) const {
    if (!wants_map(to_)) return;
    if (to_.map_mean) body(to_.map_mean, Pooling::mean);
    if (to_.map_max) body(to_.map_max, Pooling::max);
  }

  // A block of queries: Q^T, their softmax, the keys that each tile sees, and the rows of the map they belong to.
  KeyRange begin(int64_t t0) {
    const int64_t queries = std::min(plan_.blocking.queries, s_.T - t0);
    tiles_n_ = ceil_div(queries, kTile);
    const KeyRange range = start_tiles(plan_, {b_, h_, t0, queries}, keys_, {mem_.low, mem_.high}, tiles_);
    load_queries(t0, queries);
    load_softmax(t0, queries);
    for (int64_t i = 0; i < queries; ++i) {
      rows_[i] = row_pools_.of(t0 + i);
      mem_.share[i] = 1.0f / static_cast<float>(row_pools_.size(rows_[i]));
    }
    mask_padding(queries);
    return range;
  }

  // Padding lanes, without a query, see no key, so that they contribute nothing.
  void mask_padding(int64_t queries) {
    const int64_t padded = tiles_n_ * kTile;
    if (queries == padded) return;
    Tile& last = tiles_[tiles_n_ - 1];
    if (plan_.visibility.everything()) {
      std::fill(mem_.low + padded - kTile, mem_.low + queries, 0.0f);
      std::fill(mem_.high + padded - kTile, mem_.high + queries, static_cast<float>(s_.S));
    }
    last.keys.all_begin = last.keys.all_end = s_.S;
    for (int64_t i = queries; i < padded; ++i) mem_.high[i] = mem_.low[i] = mem_.share[i] = 0;
  }

  // Q^T, scaled for base 2, and what the stages read.
  void load_queries(int64_t t0, int64_t queries) {
    const V scale = hn::Set(d_, plan_.stages.additive ? 1.0f : stages_.factor);
    for (int64_t at = 0; at < queries; at += kLanes) {
      float* tile = mem_.q + at / kTile * kTile * s_.D + at % kTile;
      const Rows rows{in_.q.at(b_, h_, t0 + at), in_.q.stride(2)};
      rows_to_lanes(d_, {rows, std::min(kLanes, queries - at), s_.D}, scale, tile, mem_.stage);
    }
    load_stage_scratch(plan_, in_, stages_, {b_, h_, t0, round_up(queries, kTile)}, mem_.stages);
  }

  void load_softmax(int64_t t0, int64_t queries) {
    for (int64_t i = 0; i < round_up(queries, kTile); ++i) {
      const float* stats = stats_.at(b_, h_, t0 + std::min(i, queries - 1));
      mem_.max[i] = stats[0];
      mem_.inverse[i] = stats[1] == 0 ? 0 : 1 / stats[1];
    }
  }

  void step(int64_t t0, int64_t first, int64_t count) {
    const Rows k = load_keys({first, first + count});
    std::fill_n(mem_.received, count * kLanes, 0.0f);
    for (int64_t i = 0; i < tiles_n_; ++i) {
      Tile& tile = tiles_[i];
      tile.enter(first, count);
      if (tile.rows == 0) continue;
      if (stages_.hides() && !load_extra_of(tile, t0 + i * kTile)) continue;
      score(i, k.from(tile.first - first), AttentionStage::weight);
      weigh(i, mem_.received + (tile.first - first) * kLanes);
      if (wants_map(to_)) pool_tile(i);
    }
    for (int64_t i = 0; to_.received && i < count; ++i) {
      to_.received(b_, h_, first + i) += hn::GetLane(hn::SumOfLanes(d_, hn::Load(d_, mem_.received + i * kLanes)));
    }
  }

  Rows load_keys(KeyRange keys) const {
    return kv_rows(d_, {in_.k, b_, hk_, keys}, plan_.blocking.gather ? mem_.keys : nullptr);
  }

  bool load_extra_of(const Tile& tile, int64_t t) {
    return load_extra(d_, stages_, tile, t, mem_.stage, mem_.stages.extra);
  }

  // Scores of tile i over its keys of this block, up to `stage`, but before the softmax.
  void score(int64_t i, Rows k, AttentionStage stage) {
    const Tile& tile = tiles_[i];
    const ScoreStages& wanted = plan_.stages;
    const auto scores = wanted.additive
                            ? (tile.vectors == 2 ? raw_scores<2, Score::additive> : raw_scores<1, Score::additive>)
                            : (tile.vectors == 2 ? raw_scores<2, Score::product> : raw_scores<1, Score::product>);
    scores(d_, {k, tile.rows, s_.D}, mem_.q + i * kTile * s_.D, mem_.stages.w, mem_.scores);
    if (stage == AttentionStage::raw || (wanted.softcap == 0 && wanted.slopes.empty() && !stages_.hides())) return;
    const ObservedStages to{stages_, mem_.stages.position + i * kTile, mem_.stages.extra, stage};
    (tile.vectors == 2 ? tile_stages<2> : tile_stages<1>)(d_, tile, to, mem_.scores);
  }

  void weigh(int64_t i, float* received) {
    const Tile& tile = tiles_[i];
    const TileSoftmax of{mem_.max + i * kTile, mem_.inverse + i * kTile, hiding(i)};
    const auto weights = tile.masked || stages_.hides()
                             ? (tile.vectors == 2 ? observed_weights<2, true> : observed_weights<1, true>)
                             : (tile.vectors == 2 ? observed_weights<2, false> : observed_weights<1, false>);
    weights(d_, tile, of, mem_.scores, received);
  }

  Hiding hiding(int64_t i) const {
    return {mem_.low + i * kTile, mem_.high + i * kTile, stages_.hides() ? mem_.stages.extra : nullptr};
  }

  // Accumulates the weights of tile i into the map.
  void pool_tile(int64_t i) {
    const Tile& tile = tiles_[i];
    const int64_t first = column_keys_.pools.of(tile.first);
    const auto pool = tile.vectors == 2 ? pool_columns<2> : pool_columns<1>;
    const int64_t columns = pool(d_, column_keys_, tile, first, mem_.scores, {mem_.sums, mem_.maxima});
    for (int64_t n = 0; n < tile.count; n += kLanes) {
      const int64_t at = i * kTile + n, queries = std::min(kLanes, tile.count - n);
      for_maps([&](const View<float, 4>& map, Pooling pooling) {
        const bool mean = pooling == Pooling::mean;
        const V factor = mean ? hn::Load(d_, mem_.share + at) : hn::Set(d_, 1.0f);
        transpose_out(d_, {(mean ? mem_.sums : mem_.maxima) + n, kTile}, columns, factor, {mem_.stage, columns});
        const RowsOf<float> to{map.at(b_, h_, 0, own_.begin + first - columns_.begin), map.stride(2)};
        const Matrix cells{{mem_.stage, columns}, queries, columns};
        (mean ? accumulate_cells<Pooling::mean> : accumulate_cells<Pooling::max>)(d_, cells, rows_ + at, to);
      });
    }
  }

  // A map that is larger than T x S was computed smaller, in the first cells of what this task owns of it. It is
  // stretched in place, from the end, so that every cell is read before it is overwritten.
  void stretch(const View<float, 4>& map) const {
    const int64_t M = map.shape(2), N = map.shape(3), made = column_keys_.pools.count;
    for (int64_t i = 0; N > made && i < row_pools_.count; ++i) {
      float* row = map.at(b_, h_, i, own_.begin);
      for (int64_t j = own_.end - 1; j >= own_.begin; --j) {
        row[j - own_.begin] = row[j * made / N - columns_.begin];
      }
    }
    for (int64_t i = M - 1; M > row_pools_.count && i >= 0; --i) {
      const int64_t from = i * row_pools_.count / M;
      if (from != i)
        std::copy_n(map.at(b_, h_, from, own_.begin), own_.end - own_.begin, map.at(b_, h_, i, own_.begin));
    }
  }

  // `count` consecutive queries from t on, into rows from i on, over this chunk's keys.
  void show_rows(int64_t i, int64_t t, int64_t count) {
    const bool weights = to_.stage == AttentionStage::weight, pairs = weights || to_.stage == AttentionStage::masked;
    Tile& tile = tiles_[0];
    tile = {.keys = tile_range(plan_.visibility, {b_, h_, t, count}, {mem_.low, mem_.high}),
            .count = count,
            .first = 0,
            .rows = 0,
            .vectors = count > kLanes ? 2 : 1,
            .masked = true,
            .started = false};
    load_queries(t, count);
    if (weights) load_softmax(t, count);
    for (tile.first = keys_.begin; tile.first < keys_.end; tile.first += tile.rows) {
      tile.rows = std::min(key_block(s_), keys_.end - tile.first);
      if (pairs && stages_.hides()) load_extra_of(tile, t);
      score(0, load_keys({tile.first, tile.first + tile.rows}), to_.stage);
      if (to_.stage == AttentionStage::masked) mask_scores(d_, tile, hiding(0), mem_.scores);
      if (weights) {
        std::fill_n(mem_.received, tile.rows * kLanes, 0.0f);
        weigh(0, mem_.received);
      }
      for (int64_t n = 0; n < count; n += kLanes) {
        const RowsOf<float> rows{to_.rows.at(b_, h_, i + n, tile.first), to_.rows.stride(2)};
        lanes_to_rows(d_, mem_.scores + n, hn::Set(d_, unit()), {rows, std::min(kLanes, count - n), tile.rows},
                      mem_.stage);
      }
    }
  }

  // What the tile's values at the observed stage are to be multiplied by: scores there are in base 2, or before
  // softcap.
  float unit() const {
    if (to_.stage == AttentionStage::weight) return 1;
    const bool divided = to_.stage == AttentionStage::raw && plan_.stages.softcap != 0;
    return divided ? plan_.stages.softcap : std::numbers::ln2_v<float>;
  }

  const AttentionPlan::Details& plan_;
  const AttentionShape& s_;
  const AttentionInputs& in_;
  const View<const float, 4>& stats_;
  const AttentionObservations& to_;
  const int64_t b_, h_, hk_;
  const Pools row_pools_;
  const ColumnKeys column_keys_;
  const ObserveScratch mem_;
  const HeadStages stages_;
  const F d_;
  KeyRange keys_, columns_;  // of this chunk; columns before stretching
  KeyRange own_{0, 0};       // the columns of the map that this task writes
  int64_t tiles_n_ = 0;
  Tile tiles_[kMaxQueries / kTile];
  int64_t rows_[kMaxQueries];  // [query]: its row of the map
};

void observe_chunk(const ObserveCall& call, int64_t b, int64_t h, int64_t chunk, float* scratch) {
  ObserveChunk(call, b, h, chunk, scratch).run();
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(observe_chunk);

namespace {

// Without queries or keys all results are zero.
void observe_nothing(const AttentionShape& s, const AttentionObservations& to) {
  for (int64_t b = 0; b < s.B; ++b) {
    for (int64_t h = 0; h < s.Hq; ++h) {
      for (int64_t key = 0; to.received && key < s.S; ++key) to.received(b, h, key) = 0;
      for (const View<float, 4>& map : {to.map_mean, to.map_max}) {
        for (int64_t i = 0; map && i < map.shape(2); ++i) std::fill_n(map.at(b, h, i), map.shape(3), 0.0f);
      }
    }
  }
}

}  // namespace

void attention_observe(const ObservationPlan& of, const AttentionInputs& in, const View<const float, 4>& stats,
                       const AttentionObservations& to, Workspace& workspace, Parallel& parallel) noexcept {
  assert(workspace.bytes() >= of.workspace_bytes(parallel.threads()));
  const ObservationPlan::Details& plan = of.details();
  const AttentionShape& s = plan.scores.shape;
  if (s.T == 0 || s.S == 0) return observe_nothing(s, to);
  const ObserveCall call{plan, in, stats, to};
  float* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t floats = ObserveScratch(plan.scores, nullptr).floats, heads = s.B * s.Hq;
  // Chunk by chunk: the first keys of a causal pass are seen by the most queries, and come first.
  parallel.for_each(heads * plan.key_chunks, [&](int64_t task, int worker) {
    const FlushDenormals flush;
    const int64_t head = task % heads, chunk = task / heads;
    HWY_DYNAMIC_DISPATCH(observe_chunk)(call, head / s.Hq, head % s.Hq, chunk, scratch + worker * floats);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
