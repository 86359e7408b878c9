// Forward, queries in lanes: for a block of queries, block after block of keys goes through
//   S^T <- K Q^T;  m, P <- running maximum, 2^(S - m);  O^T <- 2^(m_old - m) O^T + V^T P^T
// and out <- O / sum at the end. docs/attention.md explains the layout and the numbers.
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

// Keys whose values are mixed at a time. Wide vectors come with first caches that hold the weights of all that was
// scored; elsewhere, half of them.
constexpr int64_t mix_block(const AttentionShape& s) { return kLanes >= 16 ? score_block(s) : key_block(s); }

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
  // What each tile may see.
  KeyRange begin() {
    const KeyRange range = start_tiles(plan_, b_, t0_, queries_, {0, s_.S}, mem_.low, mem_.high, tiles_);
    for (int64_t i = 0; i < tiles_n_; ++i) {
      progress_[i] = Progress::untouched;
      if (plan_.stages.top > 0) top_keys(i).clear(d_);
    }
    load_head_numbers(plan_, in_, stages_, b_, h_, t0_, tiles_n_ * kTile, mem_.stages);
    prefetch_rows({in_.q.at(b_, h_, t0_), in_.q.stride(2)}, tiles_[0].count, s_.D);
    return range;
  }

  // Q^T of tile i, scaled for base 2.
  void load_queries(int64_t i) {
    const V scale = hn::Set(d_, plan_.stages.additive ? 1.0f : stages_.factor);
    for (int n = 0; n < tiles_[i].vectors; ++n) {
      const int64_t at = i * kTile + n * kLanes;
      const Rows rows{in_.q.at(b_, h_, t0_ + at), in_.q.stride(2)};
      rows_to_lanes(d_, rows, std::min(kLanes, queries_ - at), s_.D, scale, mem_.q + i * kTile * s_.D + n * kLanes,
                    mem_.stage);
    }
    progress_[i] = Progress::loaded;
    if (i + 1 < tiles_n_) want_queries(i + 1);
  }

  // The keys [first, first + count), of those up to `end`. Beside the products of each tile, memory is asked for that
  // comes next: the values of these keys, the next tile's queries, the following keys, and the output at the end.
  void step(int64_t first, int64_t count, int64_t end) {
    const bool gather = plan_.blocking.gather;
    const Rows k = kv_rows(d_, in_.k, b_, hk_, first, count, mem_.keys, gather);
    bool any_masked = stages_.hides();
    for (int64_t i = 0; i < tiles_n_; ++i) {
      Tile& tile = tiles_[i];
      tile.enter(first, count);
      any_masked |= tile.masked;
      if (tile.rows == 0) continue;
      ahead_.start(tile.rows / kTileRows);
      if (progress_[i] == Progress::untouched) load_queries(i);
      want_part(in_.v, {first, first + count}, i, tiles_n_);
      if (first + count == end) want_next(i, in_.k);
      weigh_tile(i, {k.row(tile.first - first), k.stride});
    }
    const Rows v = kv_rows(d_, in_.v, b_, hk_, first, count, mem_.values, gather);
    const bool careful = any_masked && !all_finite(d_, v.data, v.stride, count, s_.Dv);
    const int64_t block = mix_block(s_), mixes = ceil_div(count, block) * tiles_n_;
    const KeyRange following{first + count, std::min(first + 2 * count, end)};
    int64_t mixed = 0;
    for (int64_t begin = 0; begin < count; begin += block) {
      const KeyRange keys{first + begin, first + std::min(begin + block, count)};
      for (int64_t i = 0; i < tiles_n_; ++i) {
        ahead_.start(s_.Dv / kTileRows);
        if (begin == 0 && tiles_[i].keys.any_end <= first + count) want_output(i);
        want_part(in_.k, following, mixed++, mixes);
        if (begin == 0 && following.empty()) want_next(i, in_.v);
        mix_tile(i, keys, {v.row(begin), v.stride}, careful);
        if (tiles_[i].keys.any_end <= keys.end && progress_[i] == Progress::loaded) write_tile(i);
      }
    }
  }

  // Part i of so many of some keys or values; rows that are gathered are read when they are.
  void want_part(const KvView& kv, KeyRange rows, int64_t i, int64_t parts) {
    if (rows.empty() || plan_.blocking.gather) return;
    ahead_.want_part(kv.row(b_, hk_, rows.begin), kv.strides()[2], rows.end - rows.begin, kv.shape(3),
                     {i, i + 1, parts});
  }
  void want_queries(int64_t i) {
    ahead_.want(in_.q.at(b_, h_, t0_ + i * kTile), in_.q.stride(2), tiles_[i].count, s_.D);
  }
  // With the last keys of a head's last queries, what the next head begins with: part i of its first queries and of its
  // first keys or values. Where a head is one task, threads take heads in turn.
  void want_next(int64_t i, const KvView& kv) {
    const int64_t block = plan_.blocking.queries, last = (ceil_div(s_.T, block) - 1) * block;
    const bool causal = plan_.visibility.causal();  // from the end
    if (!plan_.blocking.next_head || t0_ != (causal ? 0 : last) || plan_.blocking.gather) return;
    const int64_t next = b_ * s_.Hq + h_ + (last == 0 ? threads_ : 1), b = next / s_.Hq, h = next % s_.Hq;
    if (b >= s_.B) return;
    const int64_t t = causal ? last : 0;
    const KeyRange seen = plan_.visibility.row(b, t);
    const KeyRange keys{seen.begin, std::min(seen.begin + score_block(s_), s_.S)};
    ahead_.want_part(in_.q.at(b, h, t), in_.q.stride(2), std::min(kTile, s_.T - t), s_.D, {i, i + 1, tiles_n_});
    ahead_.want_part(kv.row(b, h / (s_.Hq / s_.Hk), keys.begin), kv.strides()[2], keys.end - keys.begin, kv.shape(3),
                     {i, i + 1, tiles_n_});
  }
  // In two halves, one a cursor.
  void want_output(int64_t i) {
    const int64_t t = t0_ + i * kTile, half = tiles_[i].count / 2;
    ahead_.want(to_.out.at(b_, h_, t), to_.out.stride(2), half, s_.Dv);
    ahead_.want(to_.out.at(b_, h_, t + half), to_.out.stride(2), tiles_[i].count - half, s_.Dv);
  }

  void weigh_tile(int64_t i, Rows k) {
    if (!plain_) return weigh_tile_in_stages(i, k);
    const int64_t at = i * kTile;
    (tiles_[i].vectors == 2 ? tile_weights<2> : tile_weights<1>)(d_, k, s_.D, tiles_[i], mem_.q + at * s_.D,
                                                                 mem_.low + at, mem_.high + at,
                                                                 mem_.scores + at * score_block(s_), mem_.max + at,
                                                                 mem_.sum + at, mem_.rescale + at, ahead_);
  }

  void weigh_tile_in_stages(int64_t i, Rows k) {
    const int64_t at = i * kTile;
    Tile& tile = tiles_[i];
    if (stages_.hides() && !load_extra_of(i)) {
      tile.rows = 0;  // nothing to see in this block
      return;
    }
    const ScoreStages& asked = plan_.stages;
    for (int64_t n = 0; asked.dropout.on() && n < tile.vectors * kLanes; n += kLanes) {
      draw_kept(d_, stages_, t0_ + at + n, tile.first, tile.rows, mem_.stages.keep + n);
    }
    const TopKeys top = top_keys(i);
    const TileStages stages{stages_,
                            mem_.stages.position + at,
                            mem_.stages.extra,
                            asked.dropout.on() ? mem_.stages.keep : nullptr,
                            asked.additive ? mem_.stages.w : nullptr,
                            asked.entropy ? mem_.surprise + at : nullptr,
                            asked.top > 0 ? &top : nullptr};
    (tile.vectors == 2 ? staged_tile_weights<2> : staged_tile_weights<1>)(d_, k, s_.D, tile, mem_.q + at * s_.D, stages,
                                                                          hiding(i), mem_.scores + at * score_block(s_),
                                                                          mem_.max + at, mem_.sum + at,
                                                                          mem_.rescale + at, ahead_);
  }

  // Of the keys that tile i has scored, those in `keys`, whose rows are `v`.
  void mix_tile(int64_t i, KeyRange keys, Rows v, bool careful) {
    Tile& tile = tiles_[i];
    const int64_t first = std::max(tile.first, keys.begin), rows = std::min(tile.first + tile.rows, keys.end) - first;
    if (rows <= 0) return;
    const Before before = first > tile.first ? Before::kept : tile.started ? Before::scaled : Before::dropped;
    tile.started = true;
    const int64_t at = i * kTile;
    const float* weights = mem_.scores + at * score_block(s_) + (first - tile.first) * kTile;
    const float* rescale = mem_.rescale + at;
    float* out = mem_.out + at * s_.Dv;
    v.data = v.row(first - keys.begin);
    if (!careful || !(tile.masked || stages_.hides())) {
      return with_before(tile.vectors, before, [&]<int NV, Before B>() HWY_ATTR {
        mix<NV, B>(d_, v, rows, s_.Dv, weights, rescale, out, ahead_);
      });
    }
    Hiding hidden = hiding(i);
    if (stages_.hides()) {
      load_extra_of(i);
      hidden.extra += (first - tile.first) * kTile;
    }
    with_before(tile.vectors, before, [&]<int NV, Before B>() HWY_ATTR {
      mix_carefully<NV, B>(d_, v, first, rows, s_.Dv, weights, rescale, hidden, out);
    });
  }

  bool load_extra_of(int64_t i) {
    const Tile& tile = tiles_[i];
    return load_extra(d_, stages_, t0_ + i * kTile, tile.count, tile.first, tile.rows, mem_.stage, mem_.stages.extra);
  }

  Hiding hiding(int64_t i) const {
    return {mem_.low + i * kTile, mem_.high + i * kTile, stages_.hides() ? mem_.stages.extra : nullptr};
  }

  TopKeys top_keys(int64_t i) const {
    const int64_t count = plan_.stages.top, at = i * kTile * count;
    return {mem_.top_scores + at, mem_.top_keys + at, count};
  }

  // Tiles that no key block has come to the end of: those that see nothing.
  void finish() {
    for (int64_t i = 0; i < tiles_n_; ++i) {
      if (progress_[i] != Progress::written) write_tile(i);
    }
  }

  // out <- O / sum, and the row statistics.
  void write_tile(int64_t i) {
    progress_[i] = Progress::written;
    const int64_t at = i * kTile, count = tiles_[i].count;
    if (!tiles_[i].started) return clear(i, count);
    const float factor = plan_.stages.dropout.keep_scale() * (in_.head_gate ? in_.head_gate(h_) : 1.0f);
    for (int n = 0; n < tiles_[i].vectors; ++n) {
      const V sum = hn::Load(d_, mem_.sum + at + n * kLanes);
      // A sum of 0: every visible score was -inf, or none was visible.
      const V inverse = hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d_)), hn::Div(hn::Set(d_, factor), sum));
      lanes_to_rows(d_, mem_.out + at * s_.Dv + n * kLanes, std::min(kLanes, count - n * kLanes), s_.Dv, inverse,
                    to_.out.at(b_, h_, t0_ + at + n * kLanes), to_.out.stride(2), mem_.stage);
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

  // What is told of tile i beside its output.
  void write_rows(int64_t i, int64_t count) {
    if (plan_.stages.top > 0) top_keys(i).weigh(d_, mem_.max + i * kTile, mem_.sum + i * kTile);
    for (int64_t j = 0; j < count; ++j) write_row(i, j);
  }

  // Of query j of tile i.
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
  Ahead ahead_;
  Tile tiles_[kMaxQueries / kTile];
  // A tile's queries are brought in at its first keys, and its output is written after its last ones: the memory they
  // wait for is waited for beside products.
  enum class Progress : uint8_t { untouched, loaded, written } progress_[kMaxQueries / kTile];
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
    // Head by head: a head's keys and values stay in the second cache. The last queries of a causal pass have the most
    // to do, and come first, so that no thread is left alone with them.
    const int64_t head = task / blocks, block = causal ? blocks - 1 - task % blocks : task % blocks;
    HWY_DYNAMIC_DISPATCH(forward_block)
    (call, head / s.Hq, head % s.Hq, block * call.plan.blocking.queries, scratch + worker * floats);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
