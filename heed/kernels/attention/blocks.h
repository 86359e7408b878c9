#pragma once
// How the fused kernels cut their work, and where in the workspace everything stands. Internal to the attention
// kernels; sizes hold for every SIMD target, so that a plan does not depend on the machine.
#include <algorithm>
#include <cstdint>

#include "heed/kernels/attention/attention.h"

namespace heed::kernels {

// A tile is two vectors of queries wide: 32 with AVX-512, 16 with AVX2, 8 with SSE4.
constexpr int64_t kMaxTile = 32;
constexpr int64_t kMaxLanes = 16;
constexpr int64_t kMaxQueries = 192;  // of a block, see AttentionPlan::Blocking

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Keys that are worked on at a time: a block of K, or of V, and a tile of queries stay in L1 together.
constexpr int64_t key_block(const AttentionShape& s) {
  const int64_t width = std::max(s.D, s.Dv);
  return width <= 64 ? 64 : width <= 128 ? 32 : 16;
}
// Backward's key block also divides by six, the rows of its dK and dV tile.
constexpr int64_t backward_key_block(const AttentionShape& s) {
  const int64_t width = std::max(s.D, s.Dv);
  return width <= 64 ? 60 : width <= 128 ? 36 : 24;
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

// What one thread of the tile kernel works in. Tiles are stored one after the other, [tile][row][query].
struct ForwardScratch {
  float *q, *out, *scores;                  // Q^T [D], O^T [Dv] and S^T [key] by queries
  float *max, *sum, *rescale, *low, *high;  // a number a query
  float *keys, *values;                     // a block of rows, where they have to be gathered
  float* stage;                             // rows of a ragged tile, padded
  int64_t floats;

  ForwardScratch(const AttentionPlan& plan, float* base) {
    const AttentionShape& s = plan.shape();
    const int64_t queries = round_up(plan.blocking().queries, kMaxTile), keys_n = key_block(s);
    Carver carve(base);
    q = carve.take(queries * s.D);
    out = carve.take(queries * s.Dv);
    scores = carve.take(queries * keys_n);
    max = carve.take(queries);
    sum = carve.take(queries);
    rescale = carve.take(queries);
    low = carve.take(queries);
    high = carve.take(queries);
    keys = carve.take(plan.blocking().gather ? keys_n * s.D : 0);
    values = carve.take(plan.blocking().gather ? keys_n * s.Dv : 0);
    stage = carve.take(kMaxLanes * std::max(s.D, s.Dv));
    floats = carve.used();
  }
};

// What one thread of the decode kernel works in: rows of the query heads that share a key head.
struct DecodeScratch {
  static constexpr int64_t kKeys = 512;  // a block of keys
  float *q, *out, *max, *sum, *scores;
  int64_t floats, width, width_v;

  DecodeScratch(const AttentionPlan& plan, float* base) {
    const AttentionShape& s = plan.shape();
    const int64_t group = s.Hq / s.Hk;
    width = round_up(s.D, kMaxLanes);
    width_v = round_up(s.Dv, kMaxLanes);
    Carver carve(base);
    q = carve.take(group * width);
    out = carve.take(group * width_v);
    max = carve.take(group);
    sum = carve.take(group);
    scores = carve.take(kKeys);
    floats = carve.used();
  }
};
// [B,Hq,chunks] of {max, sum, out[Dv]}.
inline int64_t decode_partial_stride(const AttentionShape& s) { return round_up(2 + s.Dv, 16); }
inline int64_t decode_partial_floats(const AttentionPlan& plan) {
  const AttentionShape& s = plan.shape();
  return plan.blocking().key_chunks == 1 ? 0 : s.B * s.Hq * plan.blocking().key_chunks * decode_partial_stride(s);
}

// What one thread of backward works in.
struct BackwardScratch {
  float *q_t, *do_t, *dq_t;         // Q^T, dO^T and dQ^T by queries, in tiles
  float *q, *d_out;                 // the same rows as they stand, padded to whole vectors
  float *weights, *d_scores;        // E^T and dS^T, [tile][key][query]
  float *max, *delta, *low, *high;  // a number a query
  float *keys, *values;             // the task's rows, where they have to be gathered
  float *dk, *dv;                   // of the task's keys, rows padded to whole vectors
  float* stage;
  int64_t floats, width, width_v;

  BackwardScratch(const AttentionPlan& plan, float* base) {
    const AttentionShape& s = plan.shape();
    const int64_t queries = round_up(plan.blocking().queries, kMaxTile), keys_n = backward_key_block(s);
    width = round_up(s.D, kMaxLanes);
    width_v = round_up(s.Dv, kMaxLanes);
    Carver carve(base);
    q_t = carve.take(queries * s.D);
    do_t = carve.take(queries * s.Dv);
    dq_t = carve.take(queries * s.D);
    q = carve.take(queries * width);
    d_out = carve.take(queries * width_v);
    weights = carve.take(queries * keys_n);
    d_scores = carve.take(queries * keys_n);
    max = carve.take(queries);
    delta = carve.take(queries);
    low = carve.take(queries);
    high = carve.take(queries);
    keys = carve.take(plan.blocking().gather ? plan.blocking().key_chunk * s.D : 0);
    values = carve.take(plan.blocking().gather ? plan.blocking().key_chunk * s.Dv : 0);
    dk = carve.take(plan.blocking().key_chunk * width);
    dv = carve.take(plan.blocking().key_chunk * width_v);
    stage = carve.take(kMaxLanes * std::max(s.D, s.Dv));
    floats = carve.used();
  }
};
// Chunks of keys add to dq in turn: how far each has come, where there are several.
inline int64_t backward_progress_count(const AttentionPlan& plan) {
  const int64_t chunks = plan.blocking().key_chunks;
  return chunks == 1 ? 0 : chunks * plan.shape().B * plan.shape().Hk;
}

}  // namespace heed::kernels
