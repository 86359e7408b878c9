// SPDX-License-Identifier: Apache-2.0
#pragma once
// Block sizes of the fused kernels, and the layout of their scratch memory in the workspace. Internal to the attention
// kernels. Sizes are for the widest SIMD target, so that a plan does not depend on the machine.
#include <algorithm>
#include <cstdint>

#include "heed/base/arena.h"
#include "heed/kernels/attention/plan.h"

namespace heed::kernels {

// A tile is two vectors of queries wide: 32 with AVX-512, 16 with AVX2, 8 with SSE4.
constexpr int64_t kMaxTile = 32;
constexpr int64_t kMaxLanes = 16;
constexpr int64_t kMaxQueries = 192;  // in a block of queries, see Blocking in plan.h

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Keys in a block: a block of K, or of V, and a tile of queries fit into L1 together.
constexpr int64_t key_block(const AttentionShape& s) {
  const int64_t width = std::max(s.D, s.Dv);
  return width <= 64 ? 64 : width <= 128 ? 32 : 16;
}
// Keys that forward scores before it accumulates their values. A tile of queries stays in L1 meanwhile, and rows of K
// are read in order, which the hardware prefetcher follows.
constexpr int64_t score_block(const AttentionShape& s) { return 2 * key_block(s); }
// Backward's key block: a multiple of six and twelve, the rows of its dK and dV register tiles.
constexpr int64_t kMaxBackwardKeys = 96;
constexpr int64_t backward_key_block(const AttentionShape& s) {
  const int64_t width = std::max(s.D, s.Dv);
  return width <= 64 ? kMaxBackwardKeys : width <= 128 ? 36 : 24;
}

// The padded width of rows that are read by columns, one cache line of each row at a time: whole vectors, and an odd
// number of cache lines, so that the lines of a column fall into all sets of the cache.
constexpr int64_t odd_width(int64_t columns) { return kMaxLanes * (ceil_div(columns, kMaxLanes) | 1); }

// A view of [B,Hq,T,S] from one whose extents of 1 are broadcast: they get strides of 0.
template <class T>
View<T, 4> broadcast(const View<T, 4>& view, const AttentionShape& s) {
  if (view.empty()) return {};
  Dims<4> strides = view.strides();
  for (size_t i = 0; i < 4; ++i) {
    if (view.shape(i) == 1) strides[i] = 0;
  }
  return {view.data(), {s.B, s.Hq, s.T, s.S}, strides};
}

// Scratch of the score stages (stages-inl.h), for one tile at a time.
struct StageScratch {
  float *extra, *keep;  // [key][query]: bias and boolean mask; dropout's mask
  float* w;             // [D] of the additive score, scaled
  float* position;      // [query of the block] among the keys, for ALiBi

  StageScratch(const AttentionPlan::Details& plan, int64_t queries, int64_t keys, Arena& arena) {
    const ScoreStages& stages = plan.stages;
    extra = arena.take<float>(stages.bias || stages.dense ? kMaxTile * keys : 0);
    keep = arena.take<float>(stages.dropout.on() ? kMaxTile * keys : 0);
    w = arena.take<float>(stages.additive ? round_up(plan.shape.D, kMaxLanes) : 0);
    position = arena.take<float>(stages.slopes.empty() ? 0 : queries);
  }
};

// Scratch of one thread of the tile kernel. Tiles are stored one after the other, [tile][row][query].
struct ForwardScratch {
  float *q, *out, *scores;       // Q^T [tile][D][query], O^T [tile][Dv][query], S^T [tile][key][query]
  float *max, *sum, *rescale;    // [query]: of the online softmax
  float *low, *high;             // [query]: the range of keys that it sees
  float* surprise;               // [query]: the sum of weight times score, for the entropy
  float *top_scores, *top_keys;  // [tile][rank][query]
  float *keys, *values;          // a block of rows of K and V, where they have to be gathered
  float* stage;                  // staging: rows of a partial tile, padded
  StageScratch stages;
  int64_t floats;

  ForwardScratch(const AttentionPlan::Details& plan, float* base) : ForwardScratch(plan, Arena(base)) {}

 private:
  ForwardScratch(const AttentionPlan::Details& plan, Arena arena)
      : stages(plan, round_up(plan.blocking.queries, kMaxTile), score_block(plan.shape), arena) {
    const AttentionShape& s = plan.shape;
    const int64_t queries = round_up(plan.blocking.queries, kMaxTile), keys_n = score_block(s);
    q = arena.take<float>(queries * s.D);
    out = arena.take<float>(queries * s.Dv);
    scores = arena.take<float>(queries * keys_n);
    max = arena.take<float>(queries);
    sum = arena.take<float>(queries);
    rescale = arena.take<float>(queries);
    low = arena.take<float>(queries);
    high = arena.take<float>(queries);
    surprise = arena.take<float>(plan.stages.entropy ? queries : 0);
    top_scores = arena.take<float>(queries * plan.stages.top);
    top_keys = arena.take<float>(queries * plan.stages.top);
    keys = arena.take<float>(plan.blocking.gather ? keys_n * s.D : 0);
    values = arena.take<float>(plan.blocking.gather ? keys_n * s.Dv : 0);
    stage = arena.take<float>(kMaxLanes * std::max({s.D, s.Dv, keys_n}));
    floats = arena.floats();
  }
};

// Scratch of one thread of the decode kernel: one row for each query head of a group that shares a key head.
struct DecodeScratch {
  static constexpr int64_t kKeys = 512;  // in a block
  float *q, *w, *out;                    // [head of the group][width], [..][width], [..][width_v]
  float *max, *sum;                      // [head of the group]
  float* scores;                         // [key of the block]
  int64_t floats, width, width_v;

  DecodeScratch(const AttentionPlan::Details& plan, float* base) {
    const AttentionShape& s = plan.shape;
    const int64_t group = s.Hq / s.Hk;
    width = round_up(s.D, kMaxLanes);
    width_v = round_up(s.Dv, kMaxLanes);
    Arena arena(base);
    q = arena.take<float>(group * width);
    w = arena.take<float>(plan.stages.additive ? group * width : 0);
    out = arena.take<float>(group * width_v);
    max = arena.take<float>(group);
    sum = arena.take<float>(group);
    scores = arena.take<float>(kKeys);
    floats = arena.floats();
  }
};
// Partial results of decode's chunks: [B,Hq,chunks] of {max, sum, out[Dv]}.
inline int64_t decode_partial_stride(const AttentionShape& s) { return round_up(2 + s.Dv, 16); }
inline int64_t decode_partial_floats(const AttentionPlan::Details& plan) {
  const AttentionShape& s = plan.shape;
  return plan.blocking.key_chunks == 1 ? 0 : s.B * s.Hq * plan.blocking.key_chunks * decode_partial_stride(s);
}

// Scratch of one thread of backward.
struct BackwardScratch {
  float *q_t, *do_t, *dq_t;     // Q^T, dO^T and dQ^T: [tile][column][query]
  float *q, *d_out;             // Q and dO / l, not transposed: [query][width], [query][width_v], padded (odd_width)
  float *weights, *d_scores;    // E^T and dS^T: [tile][key][query]
  float *max, *delta;           // [query]
  float *low, *high;            // [query]: the range of keys that it sees
  float *keys, *values;         // the task's rows of K and V, where they have to be gathered
  float *dk, *dv;               // sums: [key of the task][width], [key of the task][width_v]
  float *dq, *w, *dw, *hidden;  // for the additive score: dQ [query][width], w, dw, masked pairs of a tile
  float* d_bias;                // [key][query] of a tile
  float* d_bias_keys;           // [head of the group][key of the task], where bias is broadcast over queries
  float* gate;                  // [query]: dO . O before the gate
  float* stage;                 // staging: rows of a tile
  StageScratch stages;
  int64_t floats, width, width_v;

  BackwardScratch(const AttentionPlan::Details& plan, float* base) : BackwardScratch(plan, Arena(base)) {}

 private:
  BackwardScratch(const AttentionPlan::Details& plan, Arena arena)
      : stages(plan, round_up(plan.blocking.queries, kMaxTile), backward_key_block(plan.shape), arena) {
    const AttentionShape& s = plan.shape;
    const int64_t queries = round_up(plan.blocking.queries, kMaxTile), keys_n = backward_key_block(s);
    const int64_t chunk = plan.blocking.key_chunk;
    const bool gather = plan.blocking.gather, additive = plan.stages.additive, bias = plan.stages.bias;
    width = odd_width(s.D);
    width_v = odd_width(s.Dv);
    q_t = arena.take<float>(queries * s.D);
    do_t = arena.take<float>(queries * s.Dv);
    dq_t = arena.take<float>(additive ? 0 : queries * s.D);
    q = arena.take<float>(queries * width);
    d_out = arena.take<float>(queries * width_v);
    weights = arena.take<float>(queries * keys_n);
    d_scores = arena.take<float>(queries * keys_n);
    max = arena.take<float>(queries);
    delta = arena.take<float>(queries);
    low = arena.take<float>(queries);
    high = arena.take<float>(queries);
    keys = arena.take<float>(gather ? chunk * s.D : 0);
    values = arena.take<float>(gather ? chunk * s.Dv : 0);
    dk = arena.take<float>(chunk * width);
    dv = arena.take<float>(chunk * width_v);
    dq = arena.take<float>(additive ? queries * width : 0);
    w = arena.take<float>(additive ? width : 0);
    dw = arena.take<float>(additive ? width : 0);
    hidden = arena.take<float>(additive ? kMaxTile * keys_n : 0);
    d_bias = arena.take<float>(bias ? kMaxTile * keys_n : 0);
    d_bias_keys = arena.take<float>(bias ? s.Hq / s.Hk * chunk : 0);
    gate = arena.take<float>(plan.stages.gate ? queries : 0);
    stage = arena.take<float>(kMaxLanes * std::max({s.D, s.Dv, keys_n}));
    floats = arena.floats();
  }
};

// Partial sums of backward's tasks for d_head_gate and dw, which are reduced in order at the end.
struct BackwardPartials {
  float *gate, *w;  // [chunk][B,Hq], [chunk][B,Hq][width]
  int64_t floats, heads, width;

  BackwardPartials(const AttentionPlan::Details& plan, float* base) {
    const AttentionShape& s = plan.shape;
    heads = s.B * s.Hq;
    width = round_up(s.D, kMaxLanes);
    Arena arena(base);
    gate = arena.take<float>(plan.stages.gate ? plan.blocking.key_chunks * heads : 0);
    w = arena.take<float>(plan.stages.additive ? plan.blocking.key_chunks * heads * width : 0);
    floats = arena.floats();
  }
};

// Tasks that accumulate into the same rows of dq, or into the same d_bias, do so in order: the number of Progress
// counters for that, 0 where no two tasks share anything.
inline int64_t backward_progress_count(const AttentionPlan::Details& plan) {
  const int64_t chunks = plan.blocking.key_chunks;
  return chunks == 1 && !plan.blocking.in_turn ? 0 : chunks * plan.shape.B * plan.shape.Hk;
}

}  // namespace heed::kernels
