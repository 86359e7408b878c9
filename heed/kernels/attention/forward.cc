// SPDX-License-Identifier: Apache-2.0
// Forward, queries in lanes: for a block of queries, over one block of keys after the other,
//   S^T <- K Q^T;  m, P <- running maximum, 2^(S - m);  O^T <- 2^(m_old - m) O^T + V^T P^T
// and out <- O / sum at the end. docs/attention.md explains the layout and the numerics.
#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/attention/forward.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/attention/flush_denormals.h"
#include "heed/kernels/attention/forward.h"
#include "heed/kernels/attention/forward_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Keys whose values are accumulated at a time. Processors with 512-bit vectors have an L1 that holds the weights of a
// whole score_block; elsewhere, half of them.
constexpr int64_t value_block(const AttentionShape& s) { return kLanes >= 16 ? score_block(s) : key_block(s); }

// One block of queries of one head.
class ForwardBlock {
 public:
  ForwardBlock(const ForwardCall& call, int64_t b, int64_t h, int64_t t0, float* scratch)
      : plan_(call.plan),
        s_(call.plan.shape),
        in_(call.in),
        to_(call.out),
        b_(b),
        h_(h),
        hk_(h / (s_.Hq / s_.Hk)),
        t0_(t0),
        queries_(std::min(plan_.blocking.queries, s_.T - t0)),
        tiles_n_(ceil_div(queries_, kTile)),
        plain_(plan_.stages.plain()),
        threads_(call.threads),
        mem_(call.plan, scratch),
        stages_(call.plan, call.in, b, h) {}

  void run() {
    const KeyRange range = begin();
    const int64_t block = score_block(s_);
    for (int64_t first = range.begin; first < range.end; first += block)
      step(first, std::min(block, range.end - first), range.end);
    finish();
  }

 private:
  // Sets up the tiles; returns the keys that some query sees.
  KeyRange begin() {
    const KeyRange range = start_tiles(plan_, {b_, h_, t0_, queries_}, {0, s_.S}, {mem_.low, mem_.high}, tiles_);
    for (int64_t i = 0; i < tiles_n_; ++i) {
      state_[i] = TileState::untouched;
      if (plan_.stages.top > 0) top_keys(i).clear(d_);
    }
    load_stage_scratch(plan_, in_, stages_, {b_, h_, t0_, tiles_n_ * kTile}, mem_.stages);
    prefetch_rows({{in_.q.at(b_, h_, t0_), in_.q.stride(2)}, tiles_[0].count, s_.D});
    return range;
  }

  // Q^T of tile i, scaled for base 2.
  void load_queries(int64_t i) {
    const V scale = hn::Set(d_, plan_.stages.additive ? 1.0f : stages_.factor);
    for (int n = 0; n < tiles_[i].vectors; ++n) {
      const int64_t at = i * kTile + n * kLanes;
      const Rows rows{in_.q.at(b_, h_, t0_ + at), in_.q.stride(2)};
      rows_to_lanes(d_, {rows, std::min(kLanes, queries_ - at), s_.D}, scale, mem_.q + i * kTile * s_.D + n * kLanes,
                    mem_.stage);
    }
    state_[i] = TileState::loaded;
    if (i + 1 < tiles_n_) prefetch_queries(i + 1);
  }

  // The keys [first, first + count), of those up to `end`. Between the products of each tile, what comes next is
  // prefetched: the values of these keys, the next tile's queries, the following keys, and the output at the end.
  void step(int64_t first, int64_t count, int64_t end) {
    const bool gather = plan_.blocking.gather;
    const KeyRange block{first, first + count};
    const Rows k = kv_rows(d_, {in_.k, b_, hk_, block}, gather ? mem_.keys : nullptr);
    bool any_masked = stages_.hides();
    for (int64_t i = 0; i < tiles_n_; ++i) {
      Tile& tile = tiles_[i];
      tile.enter(first, count);
      any_masked |= tile.masked;
      if (tile.rows == 0) continue;
      prefetcher_.start(tile.rows / kTileRows);
      if (state_[i] == TileState::untouched) load_queries(i);
      prefetch_part(in_.v, block, i, tiles_n_);
      if (first + count == end) prefetch_next_head(i, in_.k);
      weigh_tile(i, k.from(tile.first - first));
    }
    const Rows v = kv_rows(d_, {in_.v, b_, hk_, block}, gather ? mem_.values : nullptr);
    const bool careful = any_masked && !all_finite(d_, {v, count, s_.Dv});
    const int64_t size = value_block(s_), parts = ceil_div(count, size) * tiles_n_;
    const KeyRange following{first + count, std::min(first + 2 * count, end)};
    int64_t part = 0;
    for (int64_t begin = 0; begin < count; begin += size) {
      const KeyRange keys{first + begin, first + std::min(begin + size, count)};
      for (int64_t i = 0; i < tiles_n_; ++i) {
        prefetcher_.start(s_.Dv / kTileRows);
        if (begin == 0 && tiles_[i].keys.any_end <= first + count) prefetch_output(i);
        prefetch_part(in_.k, following, part++, parts);
        if (begin == 0 && following.empty()) prefetch_next_head(i, in_.v);
        accumulate_output(i, keys, v.from(begin), careful);
        if (tiles_[i].keys.any_end <= keys.end && state_[i] == TileState::loaded) write_tile(i);
      }
    }
  }

  // Part i of `parts` of some rows of K or V; rows that are to be gathered are read by that anyway.
  void prefetch_part(const KvView& kv, KeyRange rows, int64_t i, int64_t parts) {
    if (rows.empty() || plan_.blocking.gather) return;
    prefetcher_.add_part(kv.row(b_, hk_, rows.begin), kv.strides()[2], rows.end - rows.begin, kv.shape(3),
                         {i, i + 1, parts});
  }
  void prefetch_queries(int64_t i) {
    prefetcher_.add(in_.q.at(b_, h_, t0_ + i * kTile), in_.q.stride(2), tiles_[i].count, s_.D);
  }
  // With the last keys of a head's last queries: part i of the next head's first queries, and of its first rows of K or
  // V. Where a head is one task, threads take heads in turn.
  void prefetch_next_head(int64_t i, const KvView& kv) {
    const int64_t block = plan_.blocking.queries, last = (ceil_div(s_.T, block) - 1) * block;
    const bool causal = plan_.visibility.causal();  // from the end
    if (!plan_.blocking.next_head || t0_ != (causal ? 0 : last) || plan_.blocking.gather) return;
    const int64_t next = b_ * s_.Hq + h_ + (last == 0 ? threads_ : 1), b = next / s_.Hq, h = next % s_.Hq;
    if (b >= s_.B) return;
    const int64_t t = causal ? last : 0;
    const KeyRange seen = plan_.visibility.row(b, t);
    const KeyRange keys{seen.begin, std::min(seen.begin + score_block(s_), s_.S)};
    prefetcher_.add_part(in_.q.at(b, h, t), in_.q.stride(2), std::min(kTile, s_.T - t), s_.D, {i, i + 1, tiles_n_});
    prefetcher_.add_part(kv.row(b, h / (s_.Hq / s_.Hk), keys.begin), kv.strides()[2], keys.end - keys.begin,
                         kv.shape(3), {i, i + 1, tiles_n_});
  }
  // In two halves, a cursor each.
  void prefetch_output(int64_t i) {
    const int64_t t = t0_ + i * kTile, half = tiles_[i].count / 2;
    prefetcher_.add(to_.out.at(b_, h_, t), to_.out.stride(2), half, s_.Dv);
    prefetcher_.add(to_.out.at(b_, h_, t + half), to_.out.stride(2), tiles_[i].count - half, s_.Dv);
  }

  // Scores and weights of tile i over the current block, of which it sees the rows `k`.
  void weigh_tile(int64_t i, Rows k) {
    if (!plain_) return weigh_tile_in_stages(i, k);
    (tiles_[i].vectors == 2 ? tile_weights<2> : tile_weights<1>)(d_, tiles_[i], tile_data(i, k), prefetcher_);
  }

  void weigh_tile_in_stages(int64_t i, Rows k) {
    const int64_t at = i * kTile;
    Tile& tile = tiles_[i];
    if (stages_.hides() && !load_extra_of(i)) {
      tile.rows = 0;  // nothing is visible in this block
      return;
    }
    const ScoreStages& wanted = plan_.stages;
    for (int64_t n = 0; wanted.dropout.on() && n < tile.vectors * kLanes; n += kLanes) {
      draw_dropout(d_, stages_, t0_ + at + n, tile.first, tile.rows, mem_.stages.keep + n);
    }
    const TopKeys top = top_keys(i);
    const ForwardStages stages{.head = stages_,
                               .position = mem_.stages.position + at,
                               .extra = mem_.stages.extra,
                               .keep = wanted.dropout.on() ? mem_.stages.keep : nullptr,
                               .w = wanted.additive ? mem_.stages.w : nullptr,
                               .surprise = wanted.entropy ? mem_.surprise + at : nullptr,
                               .top = wanted.top > 0 ? &top : nullptr};
    (tile.vectors == 2 ? staged_tile_weights<2> : staged_tile_weights<1>)(d_, tile, tile_data(i, k), stages,
                                                                          prefetcher_);
  }

  ForwardTile tile_data(int64_t i, Rows k) const {
    const int64_t at = i * kTile;
    return {.k = k,
            .D = s_.D,
            .q = mem_.q + at * s_.D,
            .hiding = hiding(i),
            .scores = mem_.scores + at * score_block(s_),
            .max = mem_.max + at,
            .sum = mem_.sum + at,
            .rescale = mem_.rescale + at};
  }

  // O^T of tile i, for those of the keys it has scored that are in `keys`, whose values are `v`.
  void accumulate_output(int64_t i, KeyRange keys, Rows v, bool careful) {
    Tile& tile = tiles_[i];
    const int64_t first = std::max(tile.first, keys.begin), rows = std::min(tile.first + tile.rows, keys.end) - first;
    if (rows <= 0) return;
    const Before before = first > tile.first ? Before::kept : tile.started ? Before::scaled : Before::dropped;
    tile.started = true;
    const int64_t at = i * kTile;
    const WeightedSum sum{.rows = v.from(first - keys.begin),
                          .keys = rows,
                          .columns = s_.Dv,
                          .weights = mem_.scores + at * score_block(s_) + (first - tile.first) * kTile,
                          .factor = mem_.rescale + at,
                          .out = mem_.out + at * s_.Dv};
    if (!careful || !(tile.masked || stages_.hides())) {
      return with_before(tile.vectors, before,
                         [&]<int NV, Before B>() HWY_ATTR { weighted_sum<NV, B>(d_, sum, prefetcher_); });
    }
    Hiding hidden = hiding(i);
    if (stages_.hides()) {
      load_extra_of(i);
      hidden.extra += (first - tile.first) * kTile;
    }
    with_before(tile.vectors, before,
                [&]<int NV, Before B>() HWY_ATTR { weighted_sum_carefully<NV, B>(d_, sum, first, hidden); });
  }

  bool load_extra_of(int64_t i) {
    return load_extra(d_, stages_, tiles_[i], t0_ + i * kTile, mem_.stage, mem_.stages.extra);
  }

  Hiding hiding(int64_t i) const {
    return {mem_.low + i * kTile, mem_.high + i * kTile, stages_.hides() ? mem_.stages.extra : nullptr};
  }

  TopKeys top_keys(int64_t i) const {
    const int64_t count = plan_.stages.top, at = i * kTile * count;
    return {mem_.top_scores + at, mem_.top_keys + at, count};
  }

  // Writes the tiles that no key block has: those that see nothing.
  void finish() {
    for (int64_t i = 0; i < tiles_n_; ++i) {
      if (state_[i] != TileState::written) write_tile(i);
    }
  }

  // out <- O / sum, and the row statistics.
  void write_tile(int64_t i) {
    state_[i] = TileState::written;
    const int64_t at = i * kTile, count = tiles_[i].count;
    if (!tiles_[i].started) return clear(i, count);
    const float factor = plan_.stages.dropout.keep_scale() * (in_.head_gate ? in_.head_gate(h_) : 1.0f);
    for (int n = 0; n < tiles_[i].vectors; ++n) {
      const V sum = hn::Load(d_, mem_.sum + at + n * kLanes);
      // A sum of 0: every visible score was -inf, or none was visible.
      const V inverse = hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d_)), hn::Div(hn::Set(d_, factor), sum));
      const RowsOf<float> out{to_.out.at(b_, h_, t0_ + at + n * kLanes), to_.out.stride(2)};
      lanes_to_rows(d_, mem_.out + at * s_.Dv + n * kLanes, inverse, {out, std::min(kLanes, count - n * kLanes), s_.Dv},
                    mem_.stage);
    }
    write_rows(i, count);
  }

  void clear(int64_t i, int64_t count) {
    for (int64_t at = i * kTile; at < i * kTile + count; ++at) {
      std::memset(to_.out.at(b_, h_, t0_ + at), 0, static_cast<size_t>(s_.Dv) * sizeof(float));
      mem_.max[at] = mem_.sum[at] = 0;
    }
    write_rows(i, count);
  }

  // The outputs of tile i beside `out`.
  void write_rows(int64_t i, int64_t count) {
    if (plan_.stages.top > 0) top_keys(i).weigh(d_, mem_.max + i * kTile, mem_.sum + i * kTile);
    for (int64_t j = 0; j < count; ++j) write_row(i, j);
  }

  // The same of its query j.
  void write_row(int64_t i, int64_t j) {
    const int64_t at = i * kTile + j, t = t0_ + at;
    const float max = mem_.max[at], sum = mem_.sum[at];
    write_row_stats(to_, b_, h_, t, max, sum);
    if (to_.entropy) {
      const double bits = sum == 0 ? 0.0 : std::log2(double{sum}) - double{mem_.surprise[at]} / double{sum};
      to_.entropy(b_, h_, t) = static_cast<float>(bits * std::numbers::ln2);
    }
    const TopKeys top = top_keys(i);
    for (int64_t rank = 0; rank < top.count; ++rank) {
      if (to_.top_weights) to_.top_weights(b_, h_, t, rank) = top.scores[rank * kTile + j];
      if (to_.top_keys) to_.top_keys(b_, h_, t, rank) = static_cast<int32_t>(top.keys[rank * kTile + j]);
    }
  }

  const AttentionPlan::Details& plan_;
  const AttentionShape& s_;
  const AttentionInputs& in_;
  const AttentionOutputs& to_;
  const int64_t b_, h_, hk_, t0_, queries_, tiles_n_;
  const bool plain_;
  const int threads_;
  const ForwardScratch mem_;
  const HeadStages stages_;
  const F d_;
  Prefetcher prefetcher_;
  Tile tiles_[kMaxQueries / kTile];
  // A tile's queries are loaded at its first keys, and its output is written after its last ones, so that waiting for
  // memory overlaps with the products of other tiles.
  enum class TileState : uint8_t { untouched, loaded, written } state_[kMaxQueries / kTile];
};

void forward_block(const ForwardCall& call, int64_t b, int64_t h, int64_t t0, float* scratch) {
  ForwardBlock(call, b, h, t0, scratch).run();
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(forward_block);

void forward_tiles(const ForwardCall& call, Workspace& workspace, Parallel& parallel) noexcept {
  const AttentionShape& s = call.plan.shape;
  float* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t floats = ForwardScratch(call.plan, nullptr).floats;
  const int64_t blocks = ceil_div(s.T, call.plan.blocking.queries), heads = s.B * s.Hq;
  const bool causal = call.plan.visibility.causal();
  parallel.for_each(heads * blocks, [&](int64_t task, int worker) {
    const FlushDenormals flush;
    // Head by head: a head's keys and values stay in L2. The last queries of a causal pass have the most work, and come
    // first, so that no thread is left alone with them.
    const int64_t head = task / blocks, block = causal ? blocks - 1 - task % blocks : task % blocks;
    HWY_DYNAMIC_DISPATCH(forward_block)
    (call, head / s.Hq, head % s.Hq, block * call.plan.blocking.queries, scratch + worker * floats);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
