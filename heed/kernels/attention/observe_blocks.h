// SPDX-License-Identifier: Apache-2.0
#pragma once
// How observers divide their work, and the layout of their scratch memory. Internal to observe.cc and observe_plan.cc.
#include <algorithm>
#include <cstdint>

#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/observe.h"

namespace heed::kernels {

// `places` keys, or queries, in `count` pools of nearly equal size: pool i begins at i * places / count, rounded down.
// At most as many pools as places.
struct Pools {
  int64_t places, count;
  int64_t each = count > 0 ? places / count : 0, rest = count > 0 ? places % count : 0;

  Pools(int64_t places_n, int64_t count_n) : places(places_n), count(count_n) {}
  // No division where the pools are of equal size, as they mostly are.
  int64_t begin(int64_t i) const { return i * each + (rest == 0 ? 0 : i * rest / count); }
  int64_t end(int64_t i) const { return begin(i + 1); }
  int64_t size(int64_t i) const { return end(i) - begin(i); }
  // The pool that holds the place.
  int64_t of(int64_t place) const { return rest == 0 ? place / each : ceil_div((place + 1) * count, places) - 1; }
};

// One of the maps that are wanted, for its shape: both have the same.
inline const View<float, 4>& map_of(const AttentionObservations& to) { return to.map_mean ? to.map_mean : to.map_max; }
inline bool wants_map(const AttentionObservations& to) { return map_of(to) && map_of(to).size() > 0; }

// The keys of each column of a map; without a map, a pool for each key. A map with more columns than keys is computed
// with one column a key, and stretched at the end.
inline Pools key_pools(const AttentionShape& s, const AttentionObservations& to) {
  return {s.S, wants_map(to) ? std::min(s.S, map_of(to).shape(3)) : s.S};
}
// The same for queries and the rows of a map.
inline Pools query_pools(const AttentionShape& s, const AttentionObservations& to) {
  return {s.T, wants_map(to) ? std::min(s.T, map_of(to).shape(2)) : s.T};
}

// Scratch of one thread.
struct ObserveScratch {
  float* q;              // Q^T [tile][D][query]
  float* scores;         // S^T, then weights, [key][query] of one tile
  float *max, *inverse;  // [query]: the maximum, and 1 / sum
  float *low, *high;     // [query]: the range of keys that it sees
  float* share;          // [query]: 1 / the number of queries in its cell
  float* received;       // [key][lane]
  float *sums, *maxima;  // [column of the map][query] of one tile
  float* keys;           // a block of rows of K, where they have to be gathered
  float* stage;          // staging: rows of a partial tile, padded; rows of cells
  StageScratch stages;
  int64_t floats;

  ObserveScratch(const AttentionPlan::Details& plan, float* base) : ObserveScratch(plan, Arena(base)) {}

 private:
  ObserveScratch(const AttentionPlan::Details& plan, Arena arena)
      : stages(plan, round_up(plan.blocking.queries, kMaxTile), key_block(plan.shape), arena) {
    const AttentionShape& s = plan.shape;
    const int64_t queries = round_up(plan.blocking.queries, kMaxTile), keys_n = key_block(s);
    q = arena.take<float>(queries * s.D);
    scores = arena.take<float>(kMaxTile * keys_n);
    max = arena.take<float>(queries);
    inverse = arena.take<float>(queries);
    low = arena.take<float>(queries);
    high = arena.take<float>(queries);
    share = arena.take<float>(queries);
    received = arena.take<float>(kMaxLanes * keys_n);
    sums = arena.take<float>(kMaxTile * keys_n);
    maxima = arena.take<float>(kMaxTile * keys_n);
    keys = arena.take<float>(plan.blocking.gather ? keys_n * s.D : 0);
    stage = arena.take<float>(kMaxLanes * std::max(s.D, keys_n));
    floats = arena.floats();
  }
};

}  // namespace heed::kernels
