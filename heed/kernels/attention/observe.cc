// Observers in a second pass, queries in lanes: a task owns a chunk of keys, over which block after block of queries
// goes through
//   S^T <- K Q^T, softcap, ALiBi, bias;  W <- 2^(S - m) / l
// A key's W is summed over tiles, then over lanes: what it receives. For a map, W is pooled over the keys of a column,
// while queries stay in their lanes, and only that is transposed and added to the rows of the map.
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
HWY_INLINE void score_rows(F d, Rows k, int64_t D, const float* q, const float* w, float* scores) {
  V s[R][NV];
  if constexpr (kScore == Score::additive) {
    additive_rows<R, NV>(d, k.data, k.stride, D, q, w, s);
  } else {
    product_rows<R, NV>(d, k.data, k.stride, D, q, s);
  }
  for (int i = 0; i < R * NV; ++i) hn::Store(s[i / NV][i % NV], d, scores + i / NV * kTile + i % NV * kLanes);
}

// S^T for `keys` rows of K, before any stage.
template <int NV, Score kScore>
HWY_NOINLINE void tile_scores(F d, Rows k, int64_t keys, int64_t D, const float* q, const float* w, float* scores) {
  in_pieces<kScore == Score::additive ? 2 : kTileRows>(keys, [&]<int R>(int64_t i) HWY_ATTR {
    score_rows<R, NV, kScore>(d, {k.row(i), k.stride}, D, q, w, scores + i * kTile);
  });
}

// What a tile's scores meet on their way to `stage`.
struct TileStages {
  const HeadStages& head;
  const float *position, *extra;  // see StageScratch
  AttentionStage stage;
};

template <int R, int NV>
HWY_INLINE void stage_rows(F d, const TileStages& to, int64_t key, const float* extra, float* scores) {
  V s[R * NV];
  for (int i = 0; i < R * NV; ++i) s[i] = hn::Load(d, scores + i / NV * kTile + i % NV * kLanes);
  cap_scores(d, to.head, s);
  if (to.stage != AttentionStage::capped) add_terms<R, NV>(d, to.head, key, to.position, extra, s);
  for (int i = 0; i < R * NV; ++i) hn::Store(s[i], d, scores + i / NV * kTile + i % NV * kLanes);
}

// Softcap, ALiBi and bias. Pairs outside of the runs of visible keys stay as they come.
template <int NV>
HWY_NOINLINE void tile_stages(F d, const Tile& tile, const TileStages& to, float* scores) {
  int64_t i = 0;
  for (; i + 2 <= tile.rows; i += 2) stage_rows<2, NV>(d, to, tile.first + i, to.extra + i * kTile, scores + i * kTile);
  if (i < tile.rows) stage_rows<1, NV>(d, to, tile.first + i, to.extra + i * kTile, scores + i * kTile);
}

inline void hide_scores(F d, const Tile& tile, const Hiding& hiding, float* scores) {
  for (int64_t i = 0; i < tile.rows; ++i) {
    for (int64_t n = 0; n < tile.vectors * kLanes; n += kLanes) {
      float* p = scores + i * kTile + n;
      const auto seen = hiding.seen_by(d, tile.first + i, i, n);
      hn::Store(hn::IfThenElse(seen, hn::Load(d, p), hn::Set(d, kHidden)), d, p);
    }
  }
}

// The softmax of a tile's queries, as forward left it.
struct TileSoftmax {
  const float *max, *inverse;
  Hiding hiding;
};

// R rows of scores become weights, and are added to what their keys received, lane by lane. Hidden ones become 0 at
// the very end: where a row's sum is NaN, nothing else makes them so.
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
HWY_NOINLINE void tile_weights(F d, const Tile& tile, const TileSoftmax& of, float* scores, float* received) {
  int64_t i = 0;
  for (; i + 2 <= tile.rows; i += 2)
    weigh_rows<2, NV, kHides>(d, tile, of, i, scores + i * kTile, received + i * kLanes);
  if (i < tile.rows) weigh_rows<1, NV, kHides>(d, tile, of, i, scores + i * kTile, received + i * kLanes);
}

// The keys of a map's columns, of which there are two sizes.
struct ColumnKeys {
  Pools pools;
  float narrow, wide;  // 1 / the keys of a column

  explicit ColumnKeys(const Pools& keys)
      : pools(keys), narrow(1.0f / static_cast<float>(keys.each)), wide(1.0f / static_cast<float>(keys.each + 1)) {}
  float share(int64_t size) const { return size == pools.each ? narrow : wide; }
};

// The mean and the maximum over `keys` rows of weights, of which a column may have more elsewhere.
template <int NV>
HWY_INLINE void pool_keys(F d, const float* weights, int64_t keys, float share, float* sums, float* maxima) {
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
    hn::Store(hn::Mul(sum[n], hn::Set(d, share)), d, sums + n * kLanes);
    // A maximum may lose a NaN; a sum does not.
    hn::Store(hn::IfThenElse(hn::Eq(sum[n], sum[n]), max[n], sum[n]), d, maxima + n * kLanes);
  }
}

// The weights of a tile, pooled over the keys of each column, from column `first` on: [column][query]. Returns how many
// there are.
template <int NV>
HWY_NOINLINE int64_t pool_columns(F d, const ColumnKeys& of, const Tile& tile, int64_t first, const float* weights,
                                  float* sums, float* maxima) {
  int64_t columns = 0, begin = of.pools.begin(first);
  for (int64_t row = 0; row < tile.rows; ++columns) {
    const int64_t end = of.pools.end(first + columns), last = std::min(end - tile.first, tile.rows);
    pool_keys<NV>(d, weights + row * kTile, last - row, of.share(end - begin), sums + columns * kTile,
                  maxima + columns * kTile);
    row = last;
    begin = end;
  }
  return columns;
}

enum class Pooling { mean, max };

// Rows of `columns` cells, a query each, join their rows of the map. NaN stays.
template <Pooling P>
HWY_NOINLINE void join_rows(F d, const float* cells, int64_t queries, int64_t columns, const int64_t* rows, float* map,
                            int64_t stride) {
  for (int64_t i = 0; i < queries; ++i, cells += columns) {
    float* to = map + rows[i] * stride;
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
  // What keys receive, and the map.
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

  // A block of queries: Q^T, their softmax, what each tile sees, and the cells that they belong to.
  KeyRange begin(int64_t t0) {
    const int64_t queries = std::min(plan_.blocking.queries, s_.T - t0);
    tiles_n_ = ceil_div(queries, kTile);
    const KeyRange range = start_tiles(plan_, b_, t0, queries, keys_, mem_.low, mem_.high, tiles_);
    load_queries(t0, queries);
    load_softmax(t0, queries);
    for (int64_t i = 0; i < queries; ++i) {
      rows_[i] = row_pools_.of(t0 + i);
      mem_.share[i] = 1.0f / static_cast<float>(row_pools_.size(rows_[i]));
    }
    blind_padding(queries);
    return range;
  }

  // Lanes without a query see nothing, so that they add nothing.
  void blind_padding(int64_t queries) {
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

  // Q^T, scaled for base 2, and the numbers that the stages read.
  void load_queries(int64_t t0, int64_t queries) {
    const V scale = hn::Set(d_, plan_.stages.additive ? 1.0f : stages_.factor);
    for (int64_t at = 0; at < queries; at += kLanes) {
      float* tile = mem_.q + at / kTile * kTile * s_.D + at % kTile;
      rows_to_lanes(d_, {in_.q.at(b_, h_, t0 + at), in_.q.stride(2)}, std::min(kLanes, queries - at), s_.D, scale, tile,
                    mem_.stage);
    }
    load_head_numbers(plan_, in_, stages_, b_, h_, t0, round_up(queries, kTile), mem_.stages);
  }

  void load_softmax(int64_t t0, int64_t queries) {
    for (int64_t i = 0; i < round_up(queries, kTile); ++i) {
      const float* stats = stats_.at(b_, h_, t0 + std::min(i, queries - 1));
      mem_.max[i] = stats[0];
      mem_.inverse[i] = stats[1] == 0 ? 0 : 1 / stats[1];
    }
  }

  void step(int64_t t0, int64_t first, int64_t count) {
    const Rows k = kv_rows(d_, in_.k, b_, hk_, first, count, mem_.keys, plan_.blocking.gather);
    std::fill_n(mem_.received, count * kLanes, 0.0f);
    for (int64_t i = 0; i < tiles_n_; ++i) {
      Tile& tile = tiles_[i];
      tile.enter(first, count);
      if (tile.rows == 0) continue;
      if (stages_.hides() && !load_extra_of(tile, t0 + i * kTile)) continue;
      score(i, {k.row(tile.first - first), k.stride}, AttentionStage::weight);
      weigh(i, mem_.received + (tile.first - first) * kLanes);
      if (wants_map(to_)) pool_tile(i);
    }
    for (int64_t i = 0; to_.received && i < count; ++i) {
      to_.received(b_, h_, first + i) += hn::GetLane(hn::SumOfLanes(d_, hn::Load(d_, mem_.received + i * kLanes)));
    }
  }

  bool load_extra_of(const Tile& tile, int64_t t) {
    return load_extra(d_, stages_, t, tile.count, tile.first, tile.rows, mem_.stage, mem_.stages.extra);
  }

  // Scores of tile i over its keys of this block, as far as `stage`, and no farther than before the softmax.
  void score(int64_t i, Rows k, AttentionStage stage) {
    const Tile& tile = tiles_[i];
    const ScoreStages& asked = plan_.stages;
    const auto scores = asked.additive
                            ? (tile.vectors == 2 ? tile_scores<2, Score::additive> : tile_scores<1, Score::additive>)
                            : (tile.vectors == 2 ? tile_scores<2, Score::product> : tile_scores<1, Score::product>);
    scores(d_, k, tile.rows, s_.D, mem_.q + i * kTile * s_.D, mem_.stages.w, mem_.scores);
    if (stage == AttentionStage::raw || (asked.softcap == 0 && asked.slopes.empty() && !stages_.hides())) return;
    const TileStages to{stages_, mem_.stages.position + i * kTile, mem_.stages.extra, stage};
    (tile.vectors == 2 ? tile_stages<2> : tile_stages<1>)(d_, tile, to, mem_.scores);
  }

  void weigh(int64_t i, float* received) {
    const Tile& tile = tiles_[i];
    const TileSoftmax of{mem_.max + i * kTile, mem_.inverse + i * kTile, hiding(i)};
    const auto weights = tile.masked || stages_.hides()
                             ? (tile.vectors == 2 ? tile_weights<2, true> : tile_weights<1, true>)
                             : (tile.vectors == 2 ? tile_weights<2, false> : tile_weights<1, false>);
    weights(d_, tile, of, mem_.scores, received);
  }

  Hiding hiding(int64_t i) const {
    return {mem_.low + i * kTile, mem_.high + i * kTile, stages_.hides() ? mem_.stages.extra : nullptr};
  }

  // The weights of tile i join the map.
  void pool_tile(int64_t i) {
    const Tile& tile = tiles_[i];
    const int64_t first = column_keys_.pools.of(tile.first);
    const auto pool = tile.vectors == 2 ? pool_columns<2> : pool_columns<1>;
    const int64_t columns = pool(d_, column_keys_, tile, first, mem_.scores, mem_.sums, mem_.maxima);
    for (int64_t n = 0; n < tile.count; n += kLanes) {
      const int64_t at = i * kTile + n, queries = std::min(kLanes, tile.count - n);
      for_maps([&](const View<float, 4>& map, Pooling pooling) {
        const bool mean = pooling == Pooling::mean;
        const V factor = mean ? hn::Load(d_, mem_.share + at) : hn::Set(d_, 1.0f);
        transpose_out(d_, (mean ? mem_.sums : mem_.maxima) + n, kTile, columns, factor, mem_.stage, columns);
        (mean ? join_rows<Pooling::mean>
              : join_rows<Pooling::max>)(d_, mem_.stage, queries, columns, rows_ + at,
                                         map.at(b_, h_, 0, own_.begin + first - columns_.begin), map.stride(2));
      });
    }
  }

  // A map that is larger than T x S was made smaller, at the beginning of what this task owns of it. From the end on,
  // every cell finds what it repeats before that is overwritten.
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

  // Queries t .. t + count, which are neighbours, into rows i .. i + count, over this chunk's keys.
  void show_rows(int64_t i, int64_t t, int64_t count) {
    const bool weights = to_.stage == AttentionStage::weight, pairs = weights || to_.stage == AttentionStage::masked;
    Tile& tile = tiles_[0];
    tile = {.keys = tile_range(plan_.visibility, b_, t, count, mem_.low, mem_.high),
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
      const bool gather = plan_.blocking.gather;
      if (pairs && stages_.hides()) load_extra_of(tile, t);
      score(0, kv_rows(d_, in_.k, b_, hk_, tile.first, tile.rows, mem_.keys, gather), to_.stage);
      if (to_.stage == AttentionStage::masked) hide_scores(d_, tile, hiding(0), mem_.scores);
      if (weights) {
        std::fill_n(mem_.received, tile.rows * kLanes, 0.0f);
        weigh(0, mem_.received);
      }
      for (int64_t n = 0; n < count; n += kLanes) {
        lanes_to_rows(d_, mem_.scores + n, std::min(kLanes, count - n), tile.rows, hn::Set(d_, unit()),
                      to_.rows.at(b_, h_, i + n, tile.first), to_.rows.stride(2), mem_.stage);
      }
    }
  }

  // Of what stands in a tile at the stage that rows are looked at.
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
  KeyRange keys_, columns_;  // of this chunk; columns before they are stretched
  KeyRange own_{0, 0};       // the columns of the map that this task writes
  int64_t tiles_n_ = 0;
  Tile tiles_[kMaxQueries / kTile];
  int64_t rows_[kMaxQueries];  // of the map, a query
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

// Without queries or keys there is no weight anywhere.
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
  // The first keys of a causal pass are seen by the most queries, and come first.
  parallel.for_each(heads * plan.key_chunks, [&](int64_t task, int worker) {
    const FlushDenormals flush;
    const int64_t head = task % heads, chunk = task / heads;
    HWY_DYNAMIC_DISPATCH(observe_chunk)(call, head / s.Hq, head % s.Hq, chunk, scratch + worker * floats);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
