// Forward, queries in lanes: for a block of queries, block after block of keys goes through
//   S^T <- K Q^T;  m, P <- running maximum, 2^(S - m);  O^T <- 2^(m_old - m) O^T + V^T P^T
// and out <- O / sum at the end. docs/attention.md explains the layout and the numbers.
#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/attention/forward.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/attention/additive-inl.h"
#include "heed/kernels/attention/forward.h"
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
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < NV; ++n) {
      hn::Store(s[r][n], d, scores + r * kTile + n * kLanes);
      max[n] = hn::Max(max[n], s[r][n]);
    }
  }
}

// S^T for `keys` rows of K, and the maximum over them.
template <int NV>
HWY_INLINE void scores_and_max(F d, Rows k, int64_t keys, int64_t D, const float* q, float* scores, V (&max)[NV]) {
  int64_t key = 0;
  for (; key + 4 <= keys; key += 4) score_rows<4, NV>(d, k.row(key), k.stride, D, q, scores + key * kTile, max);
  for (; key < keys; ++key) score_rows<1, NV>(d, k.row(key), k.stride, D, q, scores + key * kTile, max);
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

// R rows of scores become 2^(s - max), and are added to the sums.
template <int R, int NV>
HWY_INLINE void exponentials(F d, const V (&max)[NV], float* scores, V (&sum)[NV]) {
  V e[R * NV];
  for (int i = 0; i < R * NV; ++i) e[i] = hn::Sub(hn::Load(d, scores + i / NV * kTile + i % NV * kLanes), max[i % NV]);
  exp2(d, e);
  for (int i = 0; i < R * NV; ++i) {
    hn::Store(e[i], d, scores + i / NV * kTile + i % NV * kLanes);
    sum[i % NV] = hn::Add(sum[i % NV], e[i]);
  }
}

// Scores of one tile over the current key block, turned into weights 2^(s - m) in place. Numbers a query: max and sum
// are carried on, rescale gets 2^(m_old - m). The maximum is rounded up to an integer, which makes that factor exact.
template <int NV>
HWY_NOINLINE void tile_weights(F d, Rows k, int64_t D, const Tile& tile, const float* q, const float* low,
                               const float* high, float* scores, float* row_max, float* row_sum, float* rescale) {
  V old_max[NV], max[NV], sum[NV];
  // -FLT_MAX, not -inf: s - m stays a number (or -inf) even for a row that has seen nothing.
  for (int n = 0; n < NV; ++n) {
    old_max[n] = tile.started ? hn::Load(d, row_max + n * kLanes) : hn::Set(d, -FLT_MAX);
    max[n] = old_max[n];
  }
  if (tile.masked) {
    V unmasked[NV];
    for (int n = 0; n < NV; ++n) unmasked[n] = max[n];
    scores_and_max<NV>(d, k, tile.rows, D, q, scores, unmasked);
    mask_and_max<NV>(d, tile, low, high, scores, max);
  } else {
    scores_and_max<NV>(d, k, tile.rows, D, q, scores, max);
  }
  for (int n = 0; n < NV; ++n) {
    max[n] = hn::Ceil(max[n]);
    sum[n] = hn::Zero(d);
  }
  int64_t i = 0;
  for (; i + 2 <= tile.rows; i += 2) exponentials<2, NV>(d, max, scores + i * kTile, sum);
  if (i < tile.rows) exponentials<1, NV>(d, max, scores + i * kTile, sum);
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

// The same by the long way, for whatever AttentionPlan::Stages asks. Numbers a query, and null where not asked for:
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
  V x[R * NV];
  for (int r = 0; r < R; ++r) {
    cap_scores(d, stages.head, s[r]);
    for (int n = 0; n < NV; ++n) x[r * NV + n] = s[r][n];
  }
  add_terms<R, NV>(d, stages.head, tile.first + i, stages.position, stages.extra + i * kTile, x);
  if (i < tile.clear_begin() || i + R > tile.clear_end()) {
    for (int j = 0; j < R * NV; ++j) {
      const int64_t n = j % NV * kLanes;
      const auto visible = seen(d, tile.first + i + j / NV, hiding.low + n, hiding.high + n);
      x[j] = hn::IfThenElse(visible, x[j], hn::Set(d, kHidden));
    }
  }
  for (int j = 0; j < R * NV; ++j) {
    hn::Store(x[j], d, scores + (i + j / NV) * kTile + j % NV * kLanes);
    max[j % NV] = hn::Max(max[j % NV], x[j]);
  }
}

template <int NV, bool Additive>
HWY_INLINE void staged_scores(F d, Rows k, int64_t D, const Tile& tile, const float* q, const TileStages& stages,
                              const Hiding& hiding, float* scores, V (&max)[NV]) {
  constexpr int kRows = Additive ? 2 : 4;
  int64_t i = 0;
  for (; i + kRows <= tile.rows; i += kRows) {
    staged_score_rows<kRows, NV, Additive>(d, k, D, tile, q, stages, hiding, i, scores, max);
  }
  for (; i < tile.rows; ++i) staged_score_rows<1, NV, Additive>(d, k, D, tile, q, stages, hiding, i, scores, max);
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
                                      float* row_sum, float* rescale) {
  V old_max[NV], max[NV], sum[NV], surprise[NV];
  for (int n = 0; n < NV; ++n) {
    old_max[n] = tile.started ? hn::Load(d, row_max + n * kLanes) : hn::Set(d, -FLT_MAX);
    max[n] = old_max[n];
    sum[n] = surprise[n] = hn::Zero(d);
  }
  if (stages.head.plain() && !stages.w && !tile.masked) {
    scores_and_max<NV>(d, k, tile.rows, D, q, scores, max);
  } else if (stages.w) {
    staged_scores<NV, true>(d, k, D, tile, q, stages, hiding, scores, max);
  } else {
    staged_scores<NV, false>(d, k, D, tile, q, stages, hiding, scores, max);
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

// One block of queries of one head.
class ForwardBlock {
 public:
  ForwardBlock(const ForwardCall& call, int64_t b, int64_t h, int64_t t0, float* scratch)
      : plan_(call.plan),
        s_(call.plan.shape()),
        in_(call.in),
        to_(call.out),
        b_(b),
        h_(h),
        hk_(h / (s_.Hq / s_.Hk)),
        t0_(t0),
        queries_(std::min(plan_.blocking().queries, s_.T - t0)),
        tiles_n_(ceil_div(queries_, kTile)),
        plain_(plan_.stages().plain()),
        mem_(call.plan, scratch),
        stages_(call.plan, call.in, b, h) {}

  void run() {
    const KeyRange range = begin();
    const int64_t block = score_block(s_);
    for (int64_t first = range.begin; first < range.end; first += block)
      step(first, std::min(block, range.end - first));
    finish();
  }

 private:
  // Q^T, scaled for base 2, and what each tile may see.
  KeyRange begin() {
    const bool additive = plan_.stages().additive;
    const V scale = hn::Set(d_, additive ? 1.0f : stages_.factor);
    const KeyRange range = start_tiles(plan_, b_, t0_, queries_, {0, s_.S}, mem_.low, mem_.high, tiles_);
    for (int64_t i = 0; i < tiles_n_; ++i) {
      if (i + 1 < tiles_n_)
        prefetch_rows(in_.q.at(b_, h_, t0_ + (i + 1) * kTile), in_.q.stride(2), tiles_[i + 1].count, s_.D);
      for (int n = 0; n < tiles_[i].vectors; ++n) {
        const int64_t at = i * kTile + n * kLanes;
        const Rows rows{in_.q.at(b_, h_, t0_ + at), in_.q.stride(2)};
        rows_to_lanes(d_, rows, std::min(kLanes, queries_ - at), s_.D, scale, mem_.q + i * kTile * s_.D + n * kLanes,
                      mem_.stage);
      }
      if (plan_.stages().top > 0) top_keys(i).clear(d_);
    }
    load_head_numbers(plan_, in_, stages_, b_, h_, t0_, tiles_n_ * kTile, mem_.stages);
    return range;
  }

  void step(int64_t first, int64_t count) {
    const bool gather = plan_.blocking().gather;
    const Rows k = kv_rows(d_, in_.k, b_, hk_, first, count, mem_.keys, gather);
    bool any_masked = stages_.hides();
    for (int64_t i = 0; i < tiles_n_; ++i) {
      Tile& tile = tiles_[i];
      tile.enter(first, count);
      any_masked |= tile.masked;
      if (tile.rows > 0) weigh_tile(i, {k.row(tile.first - first), k.stride});
    }
    const Rows v = kv_rows(d_, in_.v, b_, hk_, first, count, mem_.values, gather);
    const bool careful = any_masked && !all_finite(d_, v.data, v.stride, count, s_.Dv);
    const int64_t block = key_block(s_);
    for (int64_t begin = 0; begin < count; begin += block) {
      const KeyRange keys{first + begin, first + std::min(begin + block, count)};
      for (int64_t i = 0; i < tiles_n_; ++i) mix_tile(i, keys, {v.row(begin), v.stride}, careful);
    }
  }

  void weigh_tile(int64_t i, Rows k) {
    if (!plain_) return weigh_tile_in_stages(i, k);
    const int64_t at = i * kTile;
    (tiles_[i].vectors == 2 ? tile_weights<2> : tile_weights<1>)(d_, k, s_.D, tiles_[i], mem_.q + at * s_.D,
                                                                 mem_.low + at, mem_.high + at,
                                                                 mem_.scores + at * score_block(s_), mem_.max + at,
                                                                 mem_.sum + at, mem_.rescale + at);
  }

  void weigh_tile_in_stages(int64_t i, Rows k) {
    const int64_t at = i * kTile;
    Tile& tile = tiles_[i];
    if (stages_.hides() && !load_extra_of(i)) {
      tile.rows = 0;  // nothing to see in this block
      return;
    }
    const AttentionPlan::Stages& asked = plan_.stages();
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
                                                                          mem_.rescale + at);
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
      return with_before(tile.vectors, before,
                         [&]<int NV, Before B>() HWY_ATTR { mix<NV, B>(d_, v, rows, s_.Dv, weights, rescale, out); });
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
    const int64_t count = plan_.stages().top, at = i * kTile * count;
    return {mem_.top_scores + at, mem_.top_keys + at, count};
  }

  // out <- O / sum, and the row statistics.
  void finish() {
    const float factor = plan_.stages().dropout.keep_scale() * (in_.head_gate ? in_.head_gate(h_) : 1.0f);
    for (int64_t i = 0; i < tiles_n_; ++i) {
      const int64_t at = i * kTile, count = std::min(kTile, queries_ - at);
      if (!tiles_[i].started) {
        clear(i, count);
        continue;
      }
      if (i + 1 < tiles_n_)
        prefetch_rows(to_.out.at(b_, h_, t0_ + at + kTile), to_.out.stride(2), tiles_[i + 1].count, s_.Dv);
      for (int n = 0; n < tiles_[i].vectors; ++n) {
        const V sum = hn::Load(d_, mem_.sum + at + n * kLanes);
        // A sum of 0: every visible score was -inf, or none was visible.
        const V inverse = hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d_)), hn::Div(hn::Set(d_, factor), sum));
        lanes_to_rows(d_, mem_.out + at * s_.Dv + n * kLanes, std::min(kLanes, count - n * kLanes), s_.Dv, inverse,
                      to_.out.at(b_, h_, t0_ + at + n * kLanes), to_.out.stride(2), mem_.stage);
      }
      write_rows(i, count);
    }
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
    if (plan_.stages().top > 0) top_keys(i).weigh(d_, mem_.max + i * kTile, mem_.sum + i * kTile);
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

  const AttentionPlan& plan_;
  const AttentionShape& s_;
  const AttentionInputs& in_;
  const AttentionOutputs& to_;
  const int64_t b_, h_, hk_, t0_, queries_, tiles_n_;
  const bool plain_;
  const ForwardScratch mem_;
  const HeadStages stages_;
  const F d_;
  Tile tiles_[kMaxQueries / kTile];
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
  const AttentionShape& s = call.plan.shape();
  float* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t floats = ForwardScratch(call.plan, nullptr).floats;
  const int64_t blocks = ceil_div(s.T, call.plan.blocking().queries), heads = s.B * s.Hq;
  const bool causal = call.plan.visibility().causal();
  parallel.for_each(heads * blocks, [&](int64_t task, int worker) {
    // The last queries of a causal pass have the most to do: first, so that no thread is left alone with them.
    const int64_t head = causal ? task % heads : task / blocks;
    const int64_t block = causal ? blocks - 1 - task / heads : task % blocks;
    HWY_DYNAMIC_DISPATCH(forward_block)
    (call, head / s.Hq, head % s.Hq, block * call.plan.blocking().queries, scratch + worker * floats);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
