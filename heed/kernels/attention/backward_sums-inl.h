// SPDX-License-Identifier: Apache-2.0
// dK and dV of backward: products with the queries' rows, accumulated over blocks of queries in sums of the task's own,
// and added to the gradients with the last queries that come to a key. backward.cc has the equations.
#if defined(HEED_KERNELS_ATTENTION_BACKWARD_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_BACKWARD_SUMS_INL_H_
#undef HEED_KERNELS_ATTENTION_BACKWARD_SUMS_INL_H_
#else
#define HEED_KERNELS_ATTENTION_BACKWARD_SUMS_INL_H_
#endif

#include <bit>
#include <span>

#include "heed/kernels/attention/backward.h"
#include "heed/kernels/attention/tiles-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Queries of one tile, counted from the first of the block, and where their weights of the block's first key are.
struct QueryRange {
  int64_t begin, count, weights_at{0};
};

// The queries of a tile that see one of the keys in `keys`, counted from the tile's first.
HWY_INLINE QueryRange queries_that_see(F d, const Tile& tile, KeyRange keys, const float* low, const float* high) {
  if (tile.rows == 0 || tile.first >= keys.end || tile.first + tile.rows <= keys.begin) return {0, 0};
  if (keys.begin >= tile.keys.all_begin && keys.end <= tile.keys.all_end) return {0, tile.count};
  const V begin = hn::Set(d, static_cast<float>(keys.begin)), end = hn::Set(d, static_cast<float>(keys.end));
  uint32_t seen_by = 0;  // a bit for each query
  for (int64_t n = 0; n < kTile; n += kLanes) {
    const auto sees = hn::And(hn::Lt(hn::Load(d, low + n), end), hn::Gt(hn::Load(d, high + n), begin));
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d, sees, bits);
    uint16_t lanes;
    std::memcpy(&lanes, bits, sizeof lanes);
    seen_by |= uint32_t{lanes} << n;
  }
  seen_by &= static_cast<uint32_t>((uint64_t{1} << tile.count) - 1);
  if (seen_by == 0) return {0, 0};
  const int skipped = std::countr_zero(seen_by);
  return {skipped, std::bit_width(seen_by) - skipped};
}

// Keys of a register tile, by two vectors of columns.
constexpr int kGroupKeys = kManyRegisters ? 12 : 6;
// Groups of a block's keys: whole ones, and the remainder in fours, a two and a one.
constexpr int64_t kMostGroups = kMaxBackwardKeys / kGroupKeys + kGroupKeys / 4 + 3;

// A register tile's keys: kGroupKeys, or 4, 2 or 1 at the end of a block; and the queries that see one of them.
struct KeyGroup {
  int64_t first;  // counted from the block's first key
  int keys;
  const QueryRange* queries;  // [ranges], one for each tile that has any
  int64_t ranges;
};

// dK or dV: the factors of its product, and its sums.
struct KeyGradient {
  const float* weights;  // of the block: E^T for dV, dS^T for dK, [tile][key][query]
  const float* rows;     // dO for dV, Q for dK: [query][width]
  float* sums;           // [key of the task][width]
  int64_t width, columns;
  float* gradient;  // of the task's first key, rows `stride` apart; null: not wanted
  int64_t stride;
};

// Where the sums of some keys go: to scratch, or with the last queries to the gradient.
struct SumTarget {
  float* sums;
  int64_t width;
  bool fresh;       // the sums hold nothing yet
  float* gradient;  // or null
  int64_t stride;

  SumTarget at(int64_t key, int64_t c) const {
    return {sums + key * width + c, width, fresh, gradient ? gradient + key * stride + c : nullptr, stride};
  }
};

// sums[r][c] += sum_query weights[r][query] rows[query][c] for R keys and NV vectors of columns, over the queries that
// see one of these keys: dV += E^T dO, dK += dS^T Q. weights and rows begin with the group's first key and column c.
template <int R, int NV>
HWY_INLINE void accumulate_rows(F d, const KeyGroup& group, const float* weights, const float* rows,
                                const SumTarget& to) {
  const int64_t width = to.width;
  V acc[R][NV];
  if (to.fresh) {
    unrolled<R * NV>([&](auto i) HEED_INLINED { acc[i / NV][i % NV] = hn::Zero(d); });
  } else {
    unrolled<R * NV>(
        [&](auto i) HEED_INLINED { acc[i / NV][i % NV] = hn::Load(d, to.sums + i / NV * width + i % NV * kLanes); });
  }
  if (to.gradient) {
    for (int r = 0; r < R; ++r) hwy::Prefetch(to.gradient + r * to.stride);
  }
  for (const QueryRange* range = group.queries; range < group.queries + group.ranges; ++range) {
    const float* HWY_RESTRICT w = weights + range->weights_at;
    const float* HWY_RESTRICT x = rows + range->begin * width;
    for (int64_t q = 0; q < range->count; ++q, x += width) {
      V y[NV];
      unrolled<NV>([&](auto n) HEED_INLINED { y[n] = hn::Load(d, x + n * kLanes); });
      unrolled<R>([&](auto r) HEED_INLINED {
        const V e = hn::Set(d, w[r * kTile + q]);
        unrolled<NV>([&](auto n) HEED_INLINED { acc[r][n] = hn::MulAdd(e, y[n], acc[r][n]); });
      });
    }
  }
  unrolled<R * NV>([&](auto i) HEED_INLINED {
    const V sum = acc[i / NV][i % NV];
    if (to.gradient) {
      float* p = to.gradient + i / NV * to.stride + i % NV * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, p), sum), d, p);
    } else {
      hn::Store(sum, d, to.sums + i / NV * width + i % NV * kLanes);
    }
  });
}

using KeyGroups = std::span<const KeyGroup>;

// All groups of a block's keys, for NV vectors of columns from c on.
template <int NV>
HWY_NOINLINE void accumulate_columns(F d, KeyGroups groups, const KeyGradient& of, int64_t c, const SumTarget& to) {
  for (const KeyGroup& group : groups) {
    const auto accumulate = [&]<int R>() HEED_INLINED {
      accumulate_rows<R, NV>(d, group, of.weights + group.first * kTile, of.rows + c, to.at(group.first, c));
    };
    switch (group.keys) {
      case kGroupKeys:
        accumulate.template operator()<kGroupKeys>();
        break;
      case 4:
        accumulate.template operator()<4>();
        break;
      case 2:
        accumulate.template operator()<2>();
        break;
      default:
        accumulate.template operator()<1>();
    }
  }
}

// All columns. They are the outer loop: two vectors of columns of all queries stay in L1 while one group of keys after
// the other passes over them.
inline void accumulate_groups(F d, KeyGroups groups, const KeyGradient& of, const SumTarget& to) {
  int64_t c = 0;
  for (; c + kLanes < of.columns; c += 2 * kLanes) accumulate_columns<2>(d, groups, of, c, to);
  if (c < of.columns) accumulate_columns<1>(d, groups, of, c, to);
}

// dK and dV of a task's keys. A visit is a block of queries of one head; each visit goes over blocks of keys.
class KeyGradients {
 public:
  KeyGradients(const BackwardCall& call, int64_t b, int64_t hk, KeyRange keys, const BackwardScratch& mem)
      : keys_(keys),
        block_(backward_key_block(call.plan.shape)),
        additive_(call.plan.stages.additive),
        low_(mem.low),
        high_(mem.high) {
    const auto row = [&](const View<float, 4>& view) { return view ? view.at(b, hk, keys.begin) : nullptr; };
    const AttentionShape& s = call.plan.shape;
    const auto &dk = call.grad.dk, &dv = call.grad.dv;
    dk_ = {mem.d_scores, mem.q, mem.dk, mem.width, s.D, row(dk), dk.stride(2)};
    dv_ = {mem.weights, mem.d_out, mem.dv, mem.width_v, s.Dv, row(dv), dv.stride(2)};
  }

  // A visit whose queries see keys in `range`; no queries come after the last. Sums of keys that are visited for the
  // first time are cleared; or, where all of the range is new and every key of it will be written before it is read,
  // they start in registers.
  void begin_visit(KeyRange range, bool queries_finite, bool last) {
    const bool first = visited_.empty();
    last_ = last;
    if (last) added_ = range;
    fresh_ = first && queries_finite && !additive_;
    if (first) {
      visited_ = range;
      if (!fresh_) clear(range);
      return;
    }
    clear({range.begin, visited_.begin});
    clear({visited_.end, range.end});
    visited_ = {std::min(visited_.begin, range.begin), std::max(visited_.end, range.end)};
  }

  // A block of keys, from E^T and dS^T of all tiles. Where all queries see all of them, all groups share one list.
  void accumulate(std::span<const Tile> tiles, KeyRange block, bool all_see_all) {
    size_t groups = 0;
    in_pieces<kGroupKeys>(block.end - block.begin, [&]<int R>(int64_t i) {
      KeyGroup& group = groups_[groups];
      if (groups > 0 && all_see_all) {
        group = groups_[0];
      } else {
        find_queries(tiles, {block.begin + i, block.begin + i + R}, queries_[groups], group);
      }
      group.first = i;
      group.keys = R;
      ++groups;
    });
    const F d;
    if (dv_.gradient) accumulate_groups(d, {groups_, groups}, dv_, target(dv_, block.begin));
    if (dk_.gradient && !additive_) accumulate_groups(d, {groups_, groups}, dk_, target(dk_, block.begin));
  }

  // The same for tile i alone, where Q or dO hold NaN or infinity and some pairs are masked: masked pairs are skipped.
  void accumulate_carefully(const Tile& tile, int64_t i, KeyRange block, const Hiding& hiding) const {
    for (int64_t row = 0; row < tile.rows; ++row) {
      accumulate_carefully(dv_, tile, i, block, row, hiding);
      if (!additive_) accumulate_carefully(dk_, tile, i, block, row, hiding);
    }
  }

  // After a block of keys. With the last queries, its sums are added to the gradients, unless they were from registers.
  void end_block(KeyRange block, bool careful) const {
    if (!last_) return;
    if (careful || !adds_directly(dk_)) add(dk_, block);
    if (careful || !adds_directly(dv_)) add(dv_, block);
  }

  // After the last visit: adds the sums of keys that it did not see.
  void finish() const {
    const KeyRange added = added_.empty() ? KeyRange{visited_.end, visited_.end} : added_;
    for (const KeyRange left : {KeyRange{visited_.begin, added.begin}, KeyRange{added.end, visited_.end}}) {
      add(dk_, left);
      add(dv_, left);
    }
  }

 private:
  void clear(KeyRange keys) const {
    if (keys.empty()) return;
    for (const KeyGradient& of : {dk_, dv_}) {
      std::memset(of.sums + (keys.begin - keys_.begin) * of.width, 0,
                  static_cast<size_t>((keys.end - keys.begin) * of.width) * sizeof(float));
    }
  }

  void find_queries(std::span<const Tile> tiles, KeyRange keys, QueryRange* queries, KeyGroup& group) const {
    const F d;
    group.queries = queries;
    group.ranges = 0;
    for (int64_t i = 0; i < std::ssize(tiles); ++i) {
      const int64_t at = i * kTile;
      const QueryRange seen_by = queries_that_see(d, tiles[static_cast<size_t>(i)], keys, low_ + at, high_ + at);
      if (seen_by.count == 0) continue;
      queries[group.ranges++] = {at + seen_by.begin, seen_by.count, at * block_ + seen_by.begin};
    }
  }

  // With the last queries, sums go to the gradient straight from registers, where it has whole vectors of columns.
  bool adds_directly(const KeyGradient& of) const { return of.gradient && of.columns % kLanes == 0 && !additive_; }
  SumTarget target(const KeyGradient& of, int64_t key) const {
    const int64_t row = key - keys_.begin;
    float* gradient = last_ && adds_directly(of) ? of.gradient + row * of.stride : nullptr;
    return {of.sums + row * of.width, of.width, fresh_, gradient, of.stride};
  }

  // Row `row` of the tile's keys.
  void accumulate_carefully(const KeyGradient& of, const Tile& tile, int64_t i, KeyRange block, int64_t row,
                            const Hiding& hiding) const {
    const F d;
    const float key = static_cast<float>(tile.first + row);
    const float* weights = of.weights + i * kTile * block_ + (tile.first - block.begin + row) * kTile;
    float* to = of.sums + (tile.first - keys_.begin + row) * of.width;
    for (int64_t q = 0; q < tile.count; ++q) {
      if (key < hiding.low[q] || key >= hiding.high[q]) continue;
      if (hiding.extra && hiding.extra[row * kTile + q] == kHidden) continue;
      const V weight = hn::Set(d, weights[q]);
      const float* from = of.rows + (i * kTile + q) * of.width;
      for (int64_t c = 0; c < of.width; c += kLanes) {
        hn::Store(hn::MulAdd(weight, hn::Load(d, from + c), hn::Load(d, to + c)), d, to + c);
      }
    }
  }

  void add(const KeyGradient& of, KeyRange keys) const {
    for (int64_t key = keys.begin; of.gradient && key < keys.end; ++key) {
      const float* from = of.sums + (key - keys_.begin) * of.width;
      float* to = of.gradient + (key - keys_.begin) * of.stride;
      for (int64_t c = 0; c < of.columns; ++c) to[c] += from[c];
    }
  }

  const KeyRange keys_;  // of the task
  const int64_t block_;
  const bool additive_;  // dK's sums are then accumulated by additive_gradients
  const float *low_, *high_;
  KeyGradient dk_, dv_;
  KeyRange visited_{0, 0};  // keys whose sums hold something
  KeyRange added_{0, 0};    // keys whose sums the last visit has added
  bool fresh_ = false, last_ = false;
  KeyGroup groups_[kMostGroups];
  QueryRange queries_[kMostGroups][kMaxQueries / kTile];
};

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
