#pragma once
// How observers cut their work, and where in the workspace everything stands. Internal to observe.cc and its plan.
#include <algorithm>
#include <cstdint>

#include "heed/kernels/attention/blocks.h"
#include "heed/kernels/attention/observe.h"

namespace heed::kernels {

// `places` things in `count` pools, as evenly as can be: pool i begins at i * places / count, rounded down. Not more
// pools than places.
struct Pools {
  int64_t places, count;
  int64_t each = count > 0 ? places / count : 0, rest = count > 0 ? places % count : 0;

  Pools(int64_t places_n, int64_t count_n) : places(places_n), count(count_n) {}
  // No division where there is nothing to round, as in the usual sizes.
  int64_t begin(int64_t i) const { return i * each + (rest == 0 ? 0 : i * rest / count); }
  int64_t end(int64_t i) const { return begin(i + 1); }
  int64_t size(int64_t i) const { return end(i) - begin(i); }
  // The last pool that begins at or before the place.
  int64_t of(int64_t place) const { return rest == 0 ? place / each : ceil_div((place + 1) * count, places) - 1; }
};

// What the two maps, or the one that is wanted, have in common: the shape.
inline const View<float, 4>& map_of(const AttentionObservations& to) { return to.map_mean ? to.map_mean : to.map_max; }
inline bool wants_map(const AttentionObservations& to) { return map_of(to) && map_of(to).size() > 0; }

// The keys that go into one column of a map, or one at a time where there is no map. A map with more columns than keys
// is made with a column a key, and stretched at the end.
inline Pools key_pools(const AttentionShape& s, const AttentionObservations& to) {
  return {s.S, wants_map(to) ? std::min(s.S, map_of(to).shape(3)) : s.S};
}
// The same for queries and the rows of a map.
inline Pools query_pools(const AttentionShape& s, const AttentionObservations& to) {
  return {s.T, wants_map(to) ? std::min(s.T, map_of(to).shape(2)) : s.T};
}

// What one thread works in.
struct ObserveScratch {
  float* q;                           // Q^T [tile][d][query]
  float* scores;                      // S^T, then weights, [key][query] of one tile
  float *max, *inverse, *low, *high;  // a number a query; inverse: 1 / sum
  float* share;                       // a number a query: 1 / the queries of its cell
  float* received;                    // [key][lane]
  float *sums, *maxima;               // [column of the map][query] of one tile
  float* keys;                        // a block of rows, where they have to be gathered
  float* stage;                       // rows of a ragged tile, padded; rows of cells
  StageScratch stages;
  int64_t floats;

  ObserveScratch(const AttentionPlan::Details& plan, float* base) : ObserveScratch(plan, Carver(base)) {}

 private:
  ObserveScratch(const AttentionPlan::Details& plan, Carver carve)
      : stages(plan, round_up(plan.blocking.queries, kMaxTile), key_block(plan.shape), carve) {
    const AttentionShape& s = plan.shape;
    const int64_t queries = round_up(plan.blocking.queries, kMaxTile), keys_n = key_block(s);
    q = carve.take(queries * s.D);
    scores = carve.take(kMaxTile * keys_n);
    max = carve.take(queries);
    inverse = carve.take(queries);
    low = carve.take(queries);
    high = carve.take(queries);
    share = carve.take(queries);
    received = carve.take(kMaxLanes * keys_n);
    sums = carve.take(kMaxTile * keys_n);
    maxima = carve.take(kMaxTile * keys_n);
    keys = carve.take(plan.blocking.gather ? keys_n * s.D : 0);
    stage = carve.take(kMaxLanes * std::max(s.D, keys_n));
    floats = carve.used();
  }
};

}  // namespace heed::kernels
