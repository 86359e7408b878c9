#pragma once
// How the fused kernels cut their work, and where in the workspace everything stands. Internal to the attention
// kernels; sizes hold for every SIMD target, so that a plan does not depend on the machine.
#include <algorithm>
#include <cstdint>

#include "heed/kernels/attention/plan.h"

namespace heed::kernels {

// A tile is two vectors of queries wide: 32 with AVX-512, 16 with AVX2, 8 with SSE4.
constexpr int64_t kMaxTile = 32;
constexpr int64_t kMaxLanes = 16;
constexpr int64_t kMaxQueries = 192;  // of a block, see Blocking in plan.h

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Keys that are worked on at a time: a block of K, or of V, and a tile of queries stay in L1 together.
constexpr int64_t key_block(const AttentionShape& s) {
  const int64_t width = std::max(s.D, s.Dv);
  return width <= 64 ? 64 : width <= 128 ? 32 : 16;
}
// Keys that are scored before their values are mixed. A tile of queries stays in L1 meanwhile, and keys are read row
// after row, which the prefetchers foresee.
constexpr int64_t score_block(const AttentionShape& s) { return 2 * key_block(s); }
// Backward's key block also divides by six and by twelve, the rows of its dK and dV tiles.
constexpr int64_t kMaxBackwardKeys = 96;
constexpr int64_t backward_key_block(const AttentionShape& s) {
  const int64_t width = std::max(s.D, s.Dv);
  return width <= 64 ? kMaxBackwardKeys : width <= 128 ? 36 : 24;
}

// The width of rows whose columns are read a line at a time, row after row: whole vectors, in an odd number of lines,
// so that the lines of a column fall on all sets of a cache.
constexpr int64_t odd_width(int64_t columns) { return kMaxLanes * (ceil_div(columns, kMaxLanes) | 1); }

// A view of [B,Hq,T,S] in which extents of 1 serve all: by strides of 0.
template <class T>
View<T, 4> spread(const View<T, 4>& view, const AttentionShape& s) {
  if (view.empty()) return {};
  Dims<4> strides = view.strides();
  for (size_t i = 0; i < 4; ++i) {
    if (view.shape(i) == 1) strides[i] = 0;
  }
  return {view.data(), {s.B, s.Hq, s.T, s.S}, strides};
}

// Hands out pieces of a buffer, each aligned to a cache line.
class Carver {
 public:
  explicit Carver(float* base) : base_(base) {}
  float* take(int64_t floats) {
    float* p = base_ ? base_ + used_ : nullptr;
    used_ += round_up(floats, 16);
    return p;
  }
  int64_t used() const { return used_; }

 private:
  float* base_;
  int64_t used_ = 0;
};

// What the stages of scores work in, for one tile at a time.
struct StageScratch {
  float *extra, *keep;  // [key][query]: bias and mask; what dropout keeps
  float* w;             // of the additive score, scaled
  float* position;      // of each query of the block, for ALiBi

  StageScratch(const AttentionPlan::Details& plan, int64_t queries, int64_t keys, Carver& carve) {
    const ScoreStages& stages = plan.stages;
    extra = carve.take(stages.bias || stages.dense ? kMaxTile * keys : 0);
    keep = carve.take(stages.dropout.on() ? kMaxTile * keys : 0);
    w = carve.take(stages.additive ? round_up(plan.shape.D, kMaxLanes) : 0);
    position = carve.take(stages.slopes.empty() ? 0 : queries);
  }
};

// What one thread of the tile kernel works in. Tiles are stored one after the other, [tile][row][query].
struct ForwardScratch {
  float *q, *out, *scores;                  // Q^T [D], O^T [Dv] and S^T [key] by queries
  float *max, *sum, *rescale, *low, *high;  // a number a query
  float* surprise;                          // a number a query: the sum of weights times scores, for the entropy
  float *top_scores, *top_keys;             // [tile][rank][query]
  float *keys, *values;                     // a block of rows, where they have to be gathered
  float* stage;                             // rows of a ragged tile, padded
  StageScratch stages;
  int64_t floats;

  ForwardScratch(const AttentionPlan::Details& plan, float* base) : ForwardScratch(plan, Carver(base)) {}

 private:
  ForwardScratch(const AttentionPlan::Details& plan, Carver carve)
      : stages(plan, round_up(plan.blocking.queries, kMaxTile), score_block(plan.shape), carve) {
    const AttentionShape& s = plan.shape;
    const int64_t queries = round_up(plan.blocking.queries, kMaxTile), keys_n = score_block(s);
    q = carve.take(queries * s.D);
    out = carve.take(queries * s.Dv);
    scores = carve.take(queries * keys_n);
    max = carve.take(queries);
    sum = carve.take(queries);
    rescale = carve.take(queries);
    low = carve.take(queries);
    high = carve.take(queries);
    surprise = carve.take(plan.stages.entropy ? queries : 0);
    top_scores = carve.take(queries * plan.stages.top);
    top_keys = carve.take(queries * plan.stages.top);
    keys = carve.take(plan.blocking.gather ? keys_n * s.D : 0);
    values = carve.take(plan.blocking.gather ? keys_n * s.Dv : 0);
    stage = carve.take(kMaxLanes * std::max({s.D, s.Dv, keys_n}));
    floats = carve.used();
  }
};

// What one thread of the decode kernel works in: rows of the query heads that share a key head.
struct DecodeScratch {
  static constexpr int64_t kKeys = 512;  // a block of keys
  float *q, *w, *out, *max, *sum, *scores;
  int64_t floats, width, width_v;

  DecodeScratch(const AttentionPlan::Details& plan, float* base) {
    const AttentionShape& s = plan.shape;
    const int64_t group = s.Hq / s.Hk;
    width = round_up(s.D, kMaxLanes);
    width_v = round_up(s.Dv, kMaxLanes);
    Carver carve(base);
    q = carve.take(group * width);
    w = carve.take(plan.stages.additive ? group * width : 0);
    out = carve.take(group * width_v);
    max = carve.take(group);
    sum = carve.take(group);
    scores = carve.take(kKeys);
    floats = carve.used();
  }
};
// [B,Hq,chunks] of {max, sum, out[Dv]}.
inline int64_t decode_partial_stride(const AttentionShape& s) { return round_up(2 + s.Dv, 16); }
inline int64_t decode_partial_floats(const AttentionPlan::Details& plan) {
  const AttentionShape& s = plan.shape;
  return plan.blocking.key_chunks == 1 ? 0 : s.B * s.Hq * plan.blocking.key_chunks * decode_partial_stride(s);
}

// What one thread of backward works in.
struct BackwardScratch {
  float *q_t, *do_t, *dq_t;         // Q^T, dO^T and dQ^T by queries, in tiles
  float *q, *d_out;                 // the same rows as they stand, padded (odd_width)
  float *weights, *d_scores;        // E^T and dS^T, [tile][key][query]
  float *max, *delta, *low, *high;  // a number a query
  float *keys, *values;             // the task's rows, where they have to be gathered
  float *dk, *dv;                   // of the task's keys, rows as wide as those of q and d_out
  float *dq, *w, *dw, *hidden;      // for the additive score: dQ as rows, w, dw and hidden pairs of a tile
  float* d_bias;                    // [key][query] of a tile
  float* d_bias_keys;               // [head of the group][key of the task], where one row of bias serves all queries
  float* gate;                      // a number a query: dO . O before the gate
  float* stage;
  StageScratch stages;
  int64_t floats, width, width_v;

  BackwardScratch(const AttentionPlan::Details& plan, float* base) : BackwardScratch(plan, Carver(base)) {}

 private:
  BackwardScratch(const AttentionPlan::Details& plan, Carver carve)
      : stages(plan, round_up(plan.blocking.queries, kMaxTile), backward_key_block(plan.shape), carve) {
    const AttentionShape& s = plan.shape;
    const int64_t queries = round_up(plan.blocking.queries, kMaxTile), keys_n = backward_key_block(s);
    const int64_t chunk = plan.blocking.key_chunk;
    const bool gather = plan.blocking.gather, additive = plan.stages.additive, bias = plan.stages.bias;
    width = odd_width(s.D);
    width_v = odd_width(s.Dv);
    q_t = carve.take(queries * s.D);
    do_t = carve.take(queries * s.Dv);
    dq_t = carve.take(additive ? 0 : queries * s.D);
    q = carve.take(queries * width);
    d_out = carve.take(queries * width_v);
    weights = carve.take(queries * keys_n);
    d_scores = carve.take(queries * keys_n);
    max = carve.take(queries);
    delta = carve.take(queries);
    low = carve.take(queries);
    high = carve.take(queries);
    keys = carve.take(gather ? chunk * s.D : 0);
    values = carve.take(gather ? chunk * s.Dv : 0);
    dk = carve.take(chunk * width);
    dv = carve.take(chunk * width_v);
    dq = carve.take(additive ? queries * width : 0);
    w = carve.take(additive ? width : 0);
    dw = carve.take(additive ? width : 0);
    hidden = carve.take(additive ? kMaxTile * keys_n : 0);
    d_bias = carve.take(bias ? kMaxTile * keys_n : 0);
    d_bias_keys = carve.take(bias ? s.Hq / s.Hk * chunk : 0);
    gate = carve.take(plan.stages.gate ? queries : 0);
    stage = carve.take(kMaxLanes * std::max({s.D, s.Dv, keys_n}));
    floats = carve.used();
  }
};

// Where backward's tasks leave what is summed over all of them, in order, when they are done.
struct BackwardPartials {
  float *gate, *w;  // [chunk][B,Hq] of 1, and of D padded
  int64_t floats, heads, width;

  BackwardPartials(const AttentionPlan::Details& plan, float* base) {
    const AttentionShape& s = plan.shape;
    heads = s.B * s.Hq;
    width = round_up(s.D, kMaxLanes);
    Carver carve(base);
    gate = carve.take(plan.stages.gate ? plan.blocking.key_chunks * heads : 0);
    w = carve.take(plan.stages.additive ? plan.blocking.key_chunks * heads * width : 0);
    floats = carve.used();
  }
};

// Tasks that add to the same rows of dq, or to the same bias, do so in turn: how far each has come, where any do.
inline int64_t backward_progress_count(const AttentionPlan::Details& plan) {
  const int64_t chunks = plan.blocking.key_chunks;
  return chunks == 1 && !plan.blocking.in_turn ? 0 : chunks * plan.shape.B * plan.shape.Hk;
}

}  // namespace heed::kernels
