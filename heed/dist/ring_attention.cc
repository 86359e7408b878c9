// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/ring_attention.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "heed/base/arena.h"
#include "heed/base/workspace.h"
#include "heed/dist/merge_rows.h"
#include "heed/dist/ring_blocks.h"
#include "heed/dist/ring_check.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::dist {
namespace {

using kernels::AttentionGradients;
using kernels::AttentionInputs;
using kernels::AttentionObservations;
using kernels::AttentionOptions;
using kernels::AttentionOutputs;
using kernels::Mask;
using kernels::MaskAlignment;

// Between blocks of so many queries, a communicator may move messages on that are under way: some ten milliseconds of
// work each, and enough tasks for the threads of one machine.
constexpr int64_t kQueriesAtOnce = 2048;
constexpr int64_t kWholeChunks = std::numeric_limits<int64_t>::max();

// Queries of a chunk of this rank with a chunk of the keys that are here.
struct Pair {
  Rows queries, keys;          // in the sequence
  int64_t query_at, key_at;    // where they begin among this rank's rows, and in the block
  int query_place, key_chunk;  // the first or the second of this rank's chunks; which one of all

  // Its rows of what the rank has; dimension 2. Nothing of an empty view.
  template <class T, size_t Rank>
  View<T, Rank> own(const View<T, Rank>& rows) const {
    return rows.shape(2) == 0 ? rows : rows.slice(2, query_at, queries.count());
  }
  template <class T, size_t Rank>
  View<T, Rank> theirs(const View<T, Rank>& rows) const {
    return rows.shape(2) == 0 ? rows : rows.slice(2, key_at, keys.count());
  }
};

std::vector<Pair> pairs_of(const Placement& placement, int rank, int owner, int64_t queries_at_once) {
  std::vector<Pair> pairs;
  int64_t query_at = 0;
  for (int place = 0; place < 2; ++place) {
    const Rows chunk = placement.chunk(placement.chunks_of(rank)[place]);
    int64_t key_at = 0;
    for (const int key_chunk : placement.chunks_of(owner)) {
      const Rows keys = placement.chunk(key_chunk);
      for (int64_t at = 0; at < chunk.count(); at += std::min(queries_at_once, chunk.count())) {
        const Rows queries{chunk.begin + at, chunk.begin + at + std::min(queries_at_once, chunk.count() - at)};
        pairs.push_back({queries, keys, query_at + at, key_at, place, key_chunk});
      }
      key_at += keys.count();
    }
    query_at += chunk.count();
  }
  return pairs;
}

// The options of the whole sequence for one pair: positions count from the beginnings of its chunks.
class PairOptions {
 public:
  PairOptions(const AttentionOptions& whole, const Pair& pair, int64_t length) : options_(whole) {
    const int64_t shift = pair.queries.begin - pair.keys.begin;
    Mask& mask = options_.mask;
    if (mask.causal) move(mask.causal->align, length, shift);
    if (mask.window) move(mask.window->align, length, shift);
    if (mask.alibi) move(mask.alibi->align, length, shift);
    if (!mask.lengths) return;
    for (const int64_t n : mask.lengths->keys) {
      lengths_.push_back(std::clamp<int64_t>(n - pair.keys.begin, 0, pair.keys.count()));
    }
    mask.lengths = kernels::Lengths{lengths_};
  }
  PairOptions(const PairOptions&) = delete;
  PairOptions& operator=(const PairOptions&) = delete;

  const AttentionOptions& get() const { return options_; }

 private:
  // Offsets far outside of any sequence stay there, and do not overflow.
  static void move(MaskAlignment& align, int64_t length, int64_t shift) {
    constexpr int64_t kFar = int64_t{1} << 62;
    align = {MaskAlignment::Kind::offset, std::clamp(align.resolve(length, length), -kFar, kFar) + shift};
  }

  AttentionOptions options_;
  std::vector<int64_t> lengths_;
};

// A block of keys as it travels: k [B,Hk,R,D], then v [B,Hk,R,Dv].
struct KeyBlock {
  View<float, 4> k, v;

  KeyBlock(float* block, const AttentionInputs& in, int64_t rows) {
    const int64_t B = in.k.shape(0), Hk = in.k.shape(1);
    k = {block, {B, Hk, rows, in.k.shape(3)}};
    v = {block + k.size(), {B, Hk, rows, in.v.shape(3)}};
  }
  static int64_t width(const AttentionInputs& in) {
    return in.k.shape(0) * in.k.shape(1) * (in.k.shape(3) + in.v.shape(3));
  }
};

// What forward tells of rows, in memory of its own: as far as `like` has it, with statistics, and with both or none of
// the strongest keys' lists.
class OwnOutputs {
 public:
  OwnOutputs(const AttentionOutputs& like, int64_t rows) : like_(like), memory_(floats(rows)) {}

  // For the first rows of the memory, of all heads.
  AttentionOutputs views(int64_t rows) const {
    Arena arena(memory_.data());
    return lay_out(arena, rows);
  }
  size_t bytes() const { return memory_.bytes(); }

 private:
  AttentionOutputs like_;
  Floats memory_;

  int64_t floats(int64_t rows) const {
    Arena count(nullptr);
    lay_out(count, rows);
    return count.floats();
  }

  AttentionOutputs lay_out(Arena& arena, int64_t rows) const {
    const int64_t B = like_.out.shape(0), Hq = like_.out.shape(1), Dv = like_.out.shape(3);
    AttentionOutputs own;
    own.out = take<float, 4>(arena, {B, Hq, rows, Dv});
    own.stats = take<float, 4>(arena, {B, Hq, rows, 2});
    if (like_.entropy) own.entropy = take<float, 3>(arena, {B, Hq, rows});
    if (!like_.top_weights && !like_.top_keys) return own;
    const int64_t K = like_.top_keys ? like_.top_keys.shape(3) : like_.top_weights.shape(3);
    own.top_weights = take<float, 4>(arena, {B, Hq, rows, K});
    own.top_keys = take<int32_t, 4>(arena, {B, Hq, rows, K});
    return own;
  }
  template <class T, size_t Rank>
  static View<T, Rank> take(Arena& arena, const Dims<Rank>& shape) {
    return {arena.take<T>(element_count(shape)), shape};
  }
};

AttentionOutputs own_rows(const Pair& pair, const AttentionOutputs& rows) {
  return {.out = pair.own(rows.out),
          .lse = pair.own(rows.lse),
          .stats = pair.own(rows.stats),
          .entropy = pair.own(rows.entropy),
          .top_weights = pair.own(rows.top_weights),
          .top_keys = pair.own(rows.top_keys)};
}

// The cells of a rank's rows of a map that pool the queries and keys of a pair.
View<float, 4> cells(const Pair& pair, const Placement& placement, const View<float, 4>& map) {
  if (!map) return map;
  const int64_t rows = map.shape(2) / 2, columns = map.shape(3) / placement.chunks();
  return map.slice(2, pair.query_place * rows, rows).slice(3, pair.key_chunk * columns, columns);
}

// to(b, h, t, d) = combine(to, from)
template <class Combine>
void combine(const View<const float, 4>& from, const View<float, 4>& to, Combine&& both) {
  for (int64_t b = 0; b < to.shape(0); ++b)
    for (int64_t h = 0; h < to.shape(1); ++h)
      for (int64_t t = 0; t < to.shape(2); ++t)
        for (int64_t d = 0; d < to.shape(3); ++d) to(b, h, t, d) = both(to(b, h, t, d), from(b, h, t, d));
}

void add(const View<const float, 4>& from, const View<float, 4>& to) {
  combine(from, to, [](float x, float y) { return x + y; });
}

void clear(const View<float, 4>& to) {
  combine(to, to, [](float, float) { return 0.0f; });
}

// [B,H,T] as [B,H,T,1].
template <class T>
View<T, 4> with_width(const View<T, 3>& rows) {
  return {rows.data(),
          {rows.shape(0), rows.shape(1), rows.shape(2), 1},
          {rows.stride(0), rows.stride(1), rows.stride(2), 1}};
}

}  // namespace

struct RingAttention::Rank {
  Communicator& communicator;
  Parallel& parallel;
  const Placement placement;
  RingLink link;
  Workspace workspace;  // of the kernels
  Costs costs;

  Rank(Communicator& c, int64_t length, Parallel& p)
      : communicator(c), parallel(p), placement(length, c.size()), link(c, placement) {}

  int index() const { return communicator.rank(); }

  // body(pair, its options, whether any query sees a key) for the pairs of this rank's chunks with those of `owner`, at
  // most so many queries each.
  template <class Body>
  void for_pairs(int owner, int64_t queries, const AttentionInputs& in, const AttentionOptions& options, Body&& body) {
    for (const Pair& pair : pairs_of(placement, index(), owner, queries)) {
      const PairOptions moved(options, pair, placement.length());
      const kernels::Visibility visibility(moved.get().mask, in.q.shape(0), pair.queries.count(), pair.keys.count());
      costs.pairs += static_cast<double>(visibility.pairs() * in.q.shape(1));
      body(pair, moved.get(), visibility.pairs() > 0);
      link.progress();
    }
  }

  void count(size_t bytes) {
    costs.bytes_held = std::max(costs.bytes_held, bytes + workspace.bytes());
    costs.bytes_sent = link.bytes_sent(), costs.seconds_waited = link.seconds_waited();
  }

  void forward(const AttentionInputs& in, const AttentionOutputs& out, const AttentionOptions& options);
  void backward(const AttentionInputs& in, const AttentionGradients& grad, const AttentionOptions& options);
  void observe(const AttentionInputs& in, const View<const float, 4>& stats, const AttentionObservations& to,
               const AttentionOptions& options);

  // This rank's keys and values, ready to go round.
  RingKeys keys_and_values(const AttentionInputs& in) {
    RingKeys keys(link, KeyBlock::width(in));
    const KeyBlock own(keys.own(), in, placement.rows(index()));
    copy_rows(in.k.rows(), own.k);
    copy_rows(in.v.rows(), own.v);
    return keys;
  }
  int64_t longest_chunk() const { return placement.length() / placement.chunks() + 1; }
};

void RingAttention::Rank::forward(const AttentionInputs& in, const AttentionOutputs& out,
                                  const AttentionOptions& options) {
  check_together({.pass = RingCall::Pass::forward, .in = in, .options = options, .out = out}, placement, communicator);
  RingKeys keys = keys_and_values(in);
  const OwnOutputs part(out, std::min(kQueriesAtOnce, longest_chunk()));
  // What merging needs and the caller does not want.
  const bool top = out.top_weights || out.top_keys;
  const bool complete = out.stats && (!top || (out.top_weights && out.top_keys));
  const OwnOutputs missing(out, complete ? 0 : placement.rows(index()));
  const AttentionOutputs spare = missing.views(complete ? 0 : placement.rows(index()));
  AttentionOutputs rows = out;
  if (!rows.stats) rows.stats = spare.stats;
  if (top && !rows.top_weights) rows.top_weights = spare.top_weights;
  if (top && !rows.top_keys) rows.top_keys = spare.top_keys;
  clear_rows(rows);
  keys.go_round([&](int owner, float* data) {
    const KeyBlock block(data, in, placement.rows(owner));
    for_pairs(owner, kQueriesAtOnce, in, options, [&](const Pair& pair, const AttentionOptions& moved, bool seen) {
      if (!seen) return;
      const AttentionOutputs told = part.views(pair.queries.count());
      attention_forward({.q = pair.own(in.q), .k = pair.theirs(block.k), .v = pair.theirs(block.v)}, told, moved,
                        workspace, parallel);
      merge_rows(own_rows(pair, rows), told, pair.keys.begin, parallel);
    });
  });
  count(keys.bytes() + part.bytes() + missing.bytes());
}

// With the final statistics of its queries, what a pair adds to the gradients is exact: nothing is merged, all of it is
// a sum.
void RingAttention::Rank::backward(const AttentionInputs& in, const AttentionGradients& grad,
                                   const AttentionOptions& options) {
  check_together({.pass = RingCall::Pass::backward, .in = in, .options = options, .grad = grad}, placement,
                 communicator);
  RingKeys keys = keys_and_values(in);
  RingSums sums(link, KeyBlock::width(in));
  keys.go_round([&](int owner, float* data) {
    const KeyBlock block(data, in, placement.rows(owner)), sum(sums.begin(owner), in, placement.rows(owner));
    for_pairs(owner, kQueriesAtOnce, in, options, [&](const Pair& pair, const AttentionOptions& moved, bool seen) {
      if (!seen) return;
      attention_backward({.q = pair.own(in.q), .k = pair.theirs(block.k), .v = pair.theirs(block.v)},
                         {.out = pair.own(grad.out),
                          .stats = pair.own(grad.stats),
                          .d_out = pair.own(grad.d_out),
                          .dq = pair.own(grad.dq),
                          .dk = pair.theirs(sum.k),
                          .dv = pair.theirs(sum.v)},
                         moved, workspace, parallel);
    });
    sums.pass_on(owner);
  });
  const KeyBlock home(sums.come_home(), in, placement.rows(index()));
  add(home.k, grad.dk);
  add(home.v, grad.dv);
  count(keys.bytes() + sums.bytes());
}

void RingAttention::Rank::observe(const AttentionInputs& in, const View<const float, 4>& stats,
                                  const AttentionObservations& to, const AttentionOptions& options) {
  check_together({.pass = RingCall::Pass::observe, .in = in, .options = options, .stats = stats, .to = to}, placement,
                 communicator);
  AttentionInputs scored = in;
  scored.v = {};  // values are not looked at: the keys go round alone
  const int64_t B = in.q.shape(0), Hq = in.q.shape(1);
  const auto received_of = [&](float* data, int64_t rows) { return View<float, 3>(data, {B, Hq, rows}); };
  RingKeys keys = keys_and_values(scored);
  RingSums sums(link, to.received ? B * Hq : 0);
  const Floats part(to.received ? B * Hq * longest_chunk() : 0);
  keys.go_round([&](int owner, float* data) {
    const KeyBlock block(data, scored, placement.rows(owner));
    const View<float, 3> sum = received_of(sums.begin(owner), placement.rows(owner));
    for_pairs(owner, kWholeChunks, in, options, [&](const Pair& pair, const AttentionOptions& moved, bool seen) {
      const AttentionObservations seen_here{
          .received = to.received ? received_of(part.data(), pair.keys.count()) : to.received,
          .map_mean = cells(pair, placement, to.map_mean),
          .map_max = cells(pair, placement, to.map_max)};
      if (!seen) {
        clear(seen_here.map_mean), clear(seen_here.map_max);
        return;
      }
      attention_observe({.q = pair.own(in.q), .k = pair.theirs(block.k), .v = pair.theirs(block.k)}, pair.own(stats),
                        seen_here, moved, workspace, parallel);
      if (to.received) add(with_width(View<const float, 3>(seen_here.received)), with_width(pair.theirs(sum)));
    });
    if (to.received) sums.pass_on(owner);
  });
  if (to.received) {
    copy_rows<float>(with_width(received_of(sums.come_home(), placement.rows(index()))), with_width(to.received));
  }
  count(keys.bytes() + sums.bytes() + part.bytes());
}

RingAttention::RingAttention(Communicator& communicator, int64_t length, Parallel& parallel)
    : rank_(std::make_unique<Rank>(communicator, length, parallel)) {}
RingAttention::~RingAttention() = default;

const Placement& RingAttention::placement() const { return rank_->placement; }
int64_t RingAttention::rows() const { return rank_->placement.rows(rank_->index()); }
const RingAttention::Costs& RingAttention::costs() const { return rank_->costs; }

void RingAttention::forward(const AttentionInputs& in, const AttentionOutputs& out, const AttentionOptions& options) {
  rank_->forward(in, out, options);
}
void RingAttention::backward(const AttentionInputs& in, const AttentionGradients& grad,
                             const AttentionOptions& options) {
  rank_->backward(in, grad, options);
}
void RingAttention::observe(const AttentionInputs& in, const View<const float, 4>& stats,
                            const AttentionObservations& to, const AttentionOptions& options) {
  rank_->observe(in, stats, to, options);
}

}  // namespace heed::dist
