// Backward, recomputing the weights from the row statistics of forward. For a block of queries and a block of keys,
//   E^T  <- 2^(K Q^T - m)                  (the weights, times the row's sum l)
//   dS^T <- E^T (V dO'^T - delta')         dO' = scale / l dO,  delta' = scale / l rowsum(dO out)
//   dV   <- dV + E^T (dO / l);   dK <- dK + dS^T Q;   dQ^T <- dQ^T + K^T dS^T
// A task owns the dK and dV of a chunk of keys of one key head. Where the keys were cut into several chunks, these add
// to each row of dq in their order: a task follows the one before it from block to block of queries. Division by l and
// the scale go into the copies of dO, so that no score pays for them. With other stages than these (softcap, bias,
// dropout, gate g ...) the long way is
//   E^T  <- 2^(Z - m), Z the staged score;   dZ^T <- E^T (g keep V dO'^T - delta'),   dO' = dO / l / (1 - rate)
//   dV   <- dV + (g keep E^T) dO';           dS^T <- scale cap'(S) dZ^T;              dbias <- dbias + dZ
#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/attention/backward.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/attention/backward.h"
#include "heed/kernels/attention/backward_tiles-inl.h"
#include "heed/kernels/attention/flush_denormals.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// Whole groups of a block's keys, and what is left: some fours, a two and a one.
constexpr int64_t kMostGroups = kMaxBackwardKeys / kSpreadKeys + kSpreadKeys / 4 + 3;

// One task: a chunk of keys of one key head, against all queries of its group of heads.
class BackwardChunk {
 public:
  BackwardChunk(const BackwardCall& call, int64_t b, int64_t hk, int64_t chunk, float* scratch)
      : plan_(call.plan),
        s_(call.plan.shape),
        in_(call.in),
        grad_(call.grad),
        partials_(call.partials),
        b_(b),
        hk_(hk),
        chunk_(chunk),
        keys_{chunk * plan_.blocking.key_chunk, std::min(s_.S, (chunk + 1) * plan_.blocking.key_chunk)},
        block_(backward_key_block(s_)),
        plain_(plan_.stages.plain()),
        threads_(call.threads),
        d_bias_(spread(grad_.d_bias, s_)),
        d_bias_over_queries_(d_bias_ && d_bias_.stride(2) == 0),
        mem_(call.plan, scratch) {
    if (!call.progress) return;
    const int64_t heads = s_.B * s_.Hk, head = b * s_.Hk + hk;
    mine_ = call.progress + chunk * heads + head;
    if (plan_.blocking.in_turn) {
      earlier_ = {mine_ - 1, 1, chunk + head > 0 ? 1 : 0};
    } else {
      earlier_ = {call.progress + head, heads, chunk};
    }
  }

  void run() {
    const int64_t keys = keys_.end - keys_.begin, group = s_.Hq / s_.Hk;
    k_ = kv_rows(d_, in_.k, b_, hk_, keys_.begin, keys, mem_.keys, plan_.blocking.gather);
    v_ = kv_rows(d_, in_.v, b_, hk_, keys_.begin, keys, mem_.values, plan_.blocking.gather);
    if (plan_.stages.bias) std::fill_n(mem_.d_bias_keys, group * plan_.blocking.key_chunk, 0.0f);
    for (int64_t h = hk_ * group; h < (hk_ + 1) * group; ++h) {
      if (plan_.stages.gate) *gate_partial(h) = 0;
      if (plan_.stages.additive) std::fill_n(w_partial(h), partials_.width, 0.0f);
    }
    // From the end: under a causal mask all chunks have something to do there, and none waits for another's start.
    for (int64_t t0 = last_block(); t0 >= 0; t0 -= plan_.blocking.queries) {
      ++step_;
      if (d_bias_ && plan_.blocking.in_turn) wait();
      for (int64_t h = hk_ * group; h < (hk_ + 1) * group; ++h) {
        last_visit_ = t0 == 0 && h + 1 == (hk_ + 1) * group;
        visit_queries(h, t0);
      }
      if (mine_) mine_->reach(step_);
    }
    ++step_;
    if (d_bias_over_queries_) {
      wait();
      for (int64_t g = 0; g < group; ++g) add_d_bias_keys(g);
    }
    if (mine_) mine_->reach(step_);
    const KeyRange added = added_.empty() ? KeyRange{visited_.end, visited_.end} : added_;
    for (const KeyRange left : {KeyRange{visited_.begin, added.begin}, KeyRange{added.end, visited_.end}}) {
      add_dk(left);
      add_dv(left);
    }
  }

 private:
  int64_t last_block() const { return (ceil_div(s_.T, plan_.blocking.queries) - 1) * plan_.blocking.queries; }
  int64_t queries_from(int64_t t0) const { return std::min(plan_.blocking.queries, s_.T - t0); }

  // Until those before have come as far.
  void wait() const {
    for (int64_t i = 0; i < earlier_.count; ++i) earlier_.first[i * earlier_.stride].wait_for(step_);
  }

  void visit_queries(int64_t h, int64_t t0) {
    h_ = h;
    t0_ = t0;
    queries_ = queries_from(t0);
    tiles_n_ = ceil_div(queries_, kTile);
    const HeadStages stages(plan_, in_, b_, h);
    stages_ = &stages;
    const KeyRange range = start_tiles(plan_, b_, t0, queries_, keys_, mem_.low, mem_.high, tiles_);
    if (!range.empty()) {
      copy_queries();
      visit_range(range);
      mixes_ = ceil_div(range.end - range.begin, block_) * tiles_n_;
      mixed_ = 0;
    }
    for (int64_t first = range.begin; first < range.end; first += block_) {
      visit_keys(first, std::min(block_, range.end - first));
    }
    if (last_visit_ && !range.empty()) added_ = range;
    if (plan_.stages.gate && !range.empty()) {
      for (int64_t i = 0; i < queries_; ++i) *gate_partial(h) += mem_.gate[i];
    }
    if (!grad_.dq || range.empty()) return;
    wait();
    add_dq();
  }

  // Sums of keys that are seen for the first time: nothing of them is read before they are written, where that can be
  // said of the whole range; otherwise they are cleared.
  void visit_range(KeyRange range) {
    const bool first = visited_.empty();
    fresh_ = first && queries_finite_ && !plan_.stages.additive;
    if (first) {
      visited_ = range;
      if (!fresh_) clear_sums(range);
      return;
    }
    clear_sums({range.begin, visited_.begin});
    clear_sums({visited_.end, range.end});
    visited_ = {std::min(visited_.begin, range.begin), std::max(visited_.end, range.end)};
  }
  void clear_sums(KeyRange keys) const {
    if (keys.empty()) return;
    const int64_t at = keys.begin - keys_.begin, count = keys.end - keys.begin;
    std::memset(mem_.dk + at * mem_.width, 0, static_cast<size_t>(count * mem_.width) * sizeof(float));
    std::memset(mem_.dv + at * mem_.width_v, 0, static_cast<size_t>(count * mem_.width_v) * sizeof(float));
  }

  // Rows of q and dO / l as they stand, and their scaled transposes. A row that sees nothing becomes zeros throughout,
  // whatever stands in it.
  void copy_queries() {
    const int64_t padded = tiles_n_ * kTile;
    const float keep_scale = plan_.stages.dropout.keep_scale();
    Finiteness finite(d_);
    for (int64_t i = 0; i < padded; ++i) {
      const float* stats = i < queries_ ? grad_.stats.at(b_, h_, t0_ + i) : nullptr;
      const PaddedRow q{mem_.q + i * mem_.width, s_.D, mem_.width};
      const PaddedRow d_out{mem_.d_out + i * mem_.width_v, s_.Dv, mem_.width_v};
      if (!stats || stats[1] == 0) {
        q.clear();
        d_out.clear();
        mem_.max[i] = kFarAbove;
        mem_.delta[i] = 0;
        continue;
      }
      copy_row(d_, in_.q.at(b_, h_, t0_ + i), q, finite);
      const float product = scale_and_dot(d_, grad_.d_out.at(b_, h_, t0_ + i), keep_scale / stats[1],
                                          grad_.out.at(b_, h_, t0_ + i), d_out, finite);
      mem_.max[i] = stats[0];
      mem_.delta[i] = (plain_ ? plan_.scale : 1 / keep_scale) * product;
    }
    queries_finite_ = finite.all_finite(d_);
    const V scale = hn::Set(d_, plain_ ? plan_.scale : 1.0f);
    const V scale_q = hn::Set(d_, plan_.stages.additive ? 1.0f : stages_->factor);
    for (int64_t i = 0; i < padded; i += kLanes) {
      const int64_t tile = i / kTile * kTile, lane = i % kTile;
      transpose_in(d_, mem_.q + i * mem_.width, mem_.width, s_.D, scale_q, mem_.q_t + tile * s_.D + lane, kTile);
      transpose_in(d_, mem_.d_out + i * mem_.width_v, mem_.width_v, s_.Dv, scale, mem_.do_t + tile * s_.Dv + lane,
                   kTile);
    }
    load_head_numbers(plan_, in_, *stages_, b_, h_, t0_, padded, mem_.stages);
    if (plan_.stages.gate) std::fill_n(mem_.gate, padded, 0.0f);
    if (!plan_.stages.additive) return;
    std::fill_n(mem_.dq, padded * mem_.width, 0.0f);
    for (int64_t a = 0; a < mem_.width; ++a) mem_.w[a] = a < s_.D ? in_.w(h_, a) : 0;
  }

  void visit_keys(int64_t first, int64_t count) {
    const Rows k{k_.row(first - keys_.begin), k_.stride}, v{v_.row(first - keys_.begin), v_.stride};
    bool any_masked = stages_->hides(), any_cut = false;
    for (int64_t i = 0; i < tiles_n_; ++i) {
      tiles_[i].enter(first, count);
      any_masked |= tiles_[i].masked;
      any_cut |= tiles_[i].rows < count;
      if (tiles_[i].rows > 0) weigh_tile(i, k, v, first, count);
    }
    // A weight that is zero because its pair is hidden must not meet NaN or infinity.
    const bool careful_queries = (any_masked || any_cut) && !queries_finite_;
    if (careful_queries) {
      spread_block_carefully(first);
    } else {
      spread_block(first, count, !any_masked && !any_cut);
    }
    const bool keys_matter = plan_.stages.additive ? any_masked : any_masked && grad_.dq;
    const bool keys_finite = !keys_matter || all_finite(d_, k.data, k.stride, count, s_.D);
    if (plan_.stages.additive) {
      const bool careful = any_masked && !(keys_finite && queries_finite_);
      for (int64_t i = 0; i < tiles_n_; ++i) {
        if (tiles_[i].rows > 0) spread_additive(i, {k.row(tiles_[i].first - first), k.stride}, first, careful);
      }
    } else if (grad_.dq) {
      for (int64_t i = 0; i < tiles_n_; ++i) {
        if (tiles_[i].rows > 0) mix_tile(i, {k.row(tiles_[i].first - first), k.stride}, first, !keys_finite);
      }
    }
    if (!last_visit_) return;
    const KeyRange keys{first, first + count};
    if (careful_queries || !adds_directly(grad_.dk)) add_dk(keys);
    if (careful_queries || !adds_directly(grad_.dv)) add_dv(keys);
  }

  // E^T and dS^T of one tile; rows of keys that it does not see are zero.
  void weigh_tile(int64_t i, Rows k, Rows v, int64_t first, int64_t count) {
    Tile& tile = tiles_[i];
    if (stages_->hides() && !load_extra_of(i)) tile.rows = 0;  // nothing to see in this block
    const int64_t at = i * kTile, skipped = tile.first - first, last = skipped + tile.rows;
    float *weights = mem_.weights + at * block_, *d_scores = mem_.d_scores + at * block_;
    for (float* p : {weights, d_scores}) {
      std::memset(p, 0, static_cast<size_t>(skipped * kTile) * sizeof(float));
      std::memset(p + last * kTile, 0, static_cast<size_t>((count - last) * kTile) * sizeof(float));
    }
    if (tile.rows == 0) return;
    const TileMemory mem{mem_.q_t + at * s_.D,
                         mem_.do_t + at * s_.Dv,
                         mem_.max + at,
                         mem_.delta + at,
                         mem_.low + at,
                         mem_.high + at,
                         weights + skipped * kTile,
                         d_scores + skipped * kTile};
    const Rows seen_k{k.row(skipped), k.stride}, seen_v{v.row(skipped), v.stride};
    if (plain_) {
      want_keys(i, {first, first + count});
      (tile.vectors == 2 ? weight_tile<2> : weight_tile<1>)(d_, s_, seen_k, seen_v, tile, mem, ahead_);
    } else {
      weigh_tile_in_stages(i, seen_k, seen_v, mem);
    }
  }

  void weigh_tile_in_stages(int64_t i, Rows k, Rows v, const TileMemory& mem) {
    const Tile& tile = tiles_[i];
    const int64_t at = i * kTile;
    const ScoreStages& asked = plan_.stages;
    for (int64_t n = 0; asked.dropout.on() && n < tile.vectors * kLanes; n += kLanes) {
      draw_kept(d_, *stages_, t0_ + at + n, tile.first, tile.rows, mem_.stages.keep + n);
    }
    const Hiding hidden = hiding(i);
    const BackwardStages stages{*stages_,
                                hidden,
                                mem_.stages.position + at,
                                mem_.stages.extra,
                                asked.dropout.on() ? mem_.stages.keep : nullptr,
                                asked.additive ? mem_.stages.w : nullptr,
                                asked.additive && tile.count == 1 ? mem_.q + at * mem_.width : nullptr,
                                plan_.scale,
                                in_.head_gate ? in_.head_gate(h_) : 1.0f,
                                d_bias_ ? mem_.d_bias : nullptr,
                                asked.gate ? mem_.gate + at : nullptr};
    (tile.vectors == 2 ? staged_weight_tile<2> : staged_weight_tile<1>)(d_, s_, k, v, tile, mem, stages);
    if (d_bias_) add_d_bias(i);
  }

  bool load_extra_of(int64_t i) {
    const Tile& tile = tiles_[i];
    return load_extra(d_, *stages_, t0_ + i * kTile, tile.count, tile.first, tile.rows, mem_.stage, mem_.stages.extra);
  }

  Hiding hiding(int64_t i) const {
    return {mem_.low + i * kTile, mem_.high + i * kTile, stages_->hides() ? mem_.stages.extra : nullptr};
  }

  // dZ of one tile goes to the rows of d_bias; where one row serves all queries, to a row of the task's own first.
  void add_d_bias(int64_t i) {
    const Tile& tile = tiles_[i];
    for (int64_t n = 0; n < tile.count; n += kLanes) {
      transpose_out(d_, mem_.d_bias + n, kTile, tile.rows, hn::Set(d_, 1.0f), mem_.stage, tile.rows);
      for (int64_t j = 0; j < std::min(kLanes, tile.count - n); ++j) {
        const float* from = mem_.stage + j * tile.rows;
        float* to = d_bias_over_queries_ ? d_bias_keys(h_ % (s_.Hq / s_.Hk)) + tile.first - keys_.begin
                                         : d_bias_.at(b_, h_, t0_ + i * kTile + n + j, tile.first);
        const int64_t stride = d_bias_over_queries_ ? 1 : d_bias_.stride(3);
        for (int64_t key = 0; key < tile.rows; ++key) to[key * stride] += from[key];
      }
    }
  }

  void add_d_bias_keys(int64_t g) {
    for (int64_t key = keys_.begin; key < keys_.end; ++key) {
      d_bias_(b_, hk_ * (s_.Hq / s_.Hk) + g, 0, key) += d_bias_keys(g)[key - keys_.begin];
    }
  }

  float* d_bias_keys(int64_t g) const { return mem_.d_bias_keys + g * plan_.blocking.key_chunk; }
  float* gate_partial(int64_t h) const { return partials_.gate + chunk_ * partials_.heads + b_ * s_.Hq + h; }
  float* w_partial(int64_t h) const {
    return partials_.w + (chunk_ * partials_.heads + b_ * s_.Hq + h) * partials_.width;
  }

  // dV and dK of the block's keys. Where all queries see all of them, one list of queries serves all groups.
  void spread_block(int64_t first, int64_t count, bool all_see_all) {
    int64_t groups = 0;
    in_pieces<kSpreadKeys>(count, [&]<int R>(int64_t i) {
      KeyGroup& group = groups_[groups];
      if (groups > 0 && all_see_all) {
        group = groups_[0];
      } else {
        find_queries(first + i, R, queries_of_groups_[groups], group);
      }
      group.first = i;
      group.keys = R;
      ++groups;
    });
    if (grad_.dv) {
      spread_groups(d_, groups_, groups, mem_.weights, mem_.d_out, s_.Dv,
                    spread_to(first, mem_.dv, mem_.width_v, grad_.dv));
    }
    if (grad_.dk && !plan_.stages.additive) {
      spread_groups(d_, groups_, groups, mem_.d_scores, mem_.q, s_.D, spread_to(first, mem_.dk, mem_.width, grad_.dk));
    }
  }

  // Those that see one of so many keys.
  void find_queries(int64_t first, int keys, QueryRange* queries, KeyGroup& group) const {
    group.queries = queries;
    group.ranges = 0;
    for (int64_t t = 0; t < tiles_n_; ++t) {
      const int64_t at = t * kTile;
      const QueryRange seen_by = queries_that_see(d_, tiles_[t], first, keys, mem_.low + at, mem_.high + at);
      if (seen_by.count == 0) continue;
      queries[group.ranges++] = {at + seen_by.begin, seen_by.count, at * block_ + seen_by.begin};
    }
  }

  // With the last queries that see a key, its sums go to the gradient straight from registers, where whole vectors fit.
  bool adds_directly(const View<float, 4>& gradient) const {
    return gradient && gradient.shape(3) % kLanes == 0 && !plan_.stages.additive;
  }
  Spread spread_to(int64_t key, float* sums, int64_t width, const View<float, 4>& gradient) const {
    float* to = last_visit_ && adds_directly(gradient) ? gradient.at(b_, hk_, key) : nullptr;
    return {sums + (key - keys_.begin) * width, width, fresh_, to, gradient.stride(2)};
  }

  void spread_block_carefully(int64_t first) {
    for (int64_t i = 0; i < tiles_n_; ++i) {
      const Tile& tile = tiles_[i];
      if (tile.rows == 0) continue;
      if (stages_->hides()) load_extra_of(i);
      const int64_t at = i * kTile, skipped = at * block_ + (tile.first - first) * kTile;
      for (int64_t row = 0; row < tile.rows; ++row) {
        const int64_t key = tile.first - keys_.begin + row;
        spread_carefully(d_, tile, row, hiding(i), mem_.weights + skipped, mem_.d_out + at * mem_.width_v, mem_.width_v,
                         mem_.dv + key * mem_.width_v);
        if (plan_.stages.additive) continue;
        spread_carefully(d_, tile, row, hiding(i), mem_.d_scores + skipped, mem_.q + at * mem_.width, mem_.width,
                         mem_.dk + key * mem_.width);
      }
    }
  }

  // dq, dk and dw of the additive score, of one tile.
  void spread_additive(int64_t i, Rows k, int64_t first, bool careful) {
    Tile& tile = tiles_[i];
    const int64_t at = i * kTile;
    if (careful) {
      if (stages_->hides()) load_extra_of(i);
      mark_hidden(i);
    }
    const AdditivePairs pairs{mem_.q + at * mem_.width,
                              tile.count,
                              k,
                              tile.rows,
                              s_.D,
                              mem_.width,
                              mem_.w,
                              mem_.d_scores + at * block_ + (tile.first - first) * kTile,
                              careful ? mem_.hidden : nullptr};
    // dw is a sum over all pairs: tile by tile, so that rounding does not grow with their number.
    std::fill_n(mem_.dw, mem_.width, 0.0f);
    additive_gradients(d_, pairs,
                       {mem_.dq + at * mem_.width, mem_.dk + (tile.first - keys_.begin) * mem_.width, mem_.dw});
    for (int64_t a = 0; a < s_.D; ++a) w_partial(h_)[a] += mem_.dw[a];
    tile.started = true;
  }

  void mark_hidden(int64_t i) {
    const Hiding hides = hiding(i);
    for (int64_t row = 0; row < tiles_[i].rows; ++row) {
      for (int64_t n = 0; n < kTile; n += kLanes) {
        const auto seen_here = hides.seen_by(d_, tiles_[i].first + row, row, n);
        hn::Store(hn::IfThenZeroElse(seen_here, hn::Set(d_, 1.0f)), d_, mem_.hidden + row * kTile + n);
      }
    }
  }

  void mix_tile(int64_t i, Rows k, int64_t first, bool careful) {
    Tile& tile = tiles_[i];
    const int64_t at = i * kTile;
    const float* d_scores = mem_.d_scores + at * block_ + (tile.first - first) * kTile;
    float* dq = mem_.dq_t + at * s_.D;
    want_rows(mixed_++);
    const bool hides = careful && (tile.masked || stages_->hides());
    if (hides && stages_->hides()) load_extra_of(i);
    with_before(tile.vectors, tile.started ? Before::kept : Before::dropped, [&]<int NV, Before B>() HWY_ATTR {
      hides ? mix_carefully<NV, B>(d_, k, tile.first, tile.rows, s_.D, d_scores, nullptr, hiding(i), dq)
            : mix<NV, B>(d_, k, tile.rows, s_.D, d_scores, nullptr, dq, ahead_);
    });
    tile.started = true;
  }

  // Asks for memory beside product i of so many that a visit makes of dQ: for the rows of dq that it ends with, and for
  // those of q, dO and out that the next one begins with.
  void want_rows(int64_t i) {
    ahead_.start(s_.D / kTileRows);
    ahead_.want_part(grad_.dq.at(b_, h_, t0_), grad_.dq.stride(2), queries_, s_.D, {i, i + 1, mixes_});
    const Visit next = next_visit();
    if (next.b == s_.B || (last_visit_ && !plan_.blocking.next_head)) return;
    int64_t m = 0;
    for (const View<const float, 4>* rows : {&in_.q, &grad_.d_out, &grad_.out}) {
      ahead_.want_part(rows->at(next.b, next.h, next.t0), rows->stride(2), queries_from(next.t0), rows->shape(3),
                       part_of_list(i, mixes_, m++, 3));
    }
  }

  // The same beside the scores of tile i in the last visit: for the gradients of the block's keys, and for the keys and
  // values that the next head begins with.
  void want_keys(int64_t i, KeyRange keys) {
    ahead_.start(2 * (keys.end - keys.begin) / kTileRows);
    if (!last_visit_ || !plan_.blocking.next_head) return;
    int64_t m = 0;
    for (const View<float, 4>* rows : {&grad_.dk, &grad_.dv}) {
      const Part part = part_of_list(i, tiles_n_, m++, 4);
      if (*rows)
        ahead_.want_part(rows->at(b_, hk_, keys.begin), rows->stride(2), keys.end - keys.begin, rows->shape(3), part);
    }
    const Visit next = next_visit();
    if (next.b == s_.B || plan_.blocking.gather) return;
    for (const KvView* rows : {&in_.k, &in_.v}) {
      ahead_.want_part(rows->row(next.b, next.h / (s_.Hq / s_.Hk), keys_.begin), rows->strides()[2],
                       std::min(block_, keys_.end - keys_.begin), rows->shape(3), part_of_list(i, tiles_n_, m++, 4));
    }
  }

  // Heads of a group one after the other, then the queries before; then the next head that this thread will take, or
  // b = B where there is none.
  struct Visit {
    int64_t b, h, t0;
  };
  Visit next_visit() const {
    const int64_t group = s_.Hq / s_.Hk;
    if ((h_ + 1) % group != 0) return {b_, h_ + 1, t0_};
    if (t0_ > 0) return {b_, hk_ * group, t0_ - plan_.blocking.queries};
    const int64_t next = b_ * s_.Hk + hk_ + threads_;
    return {std::min(next / s_.Hk, s_.B), next % s_.Hk * group, last_block()};
  }

  void add_dq() {
    for (int64_t at = 0; at < queries_; at += kLanes) {
      if (!tiles_[at / kTile].started) continue;
      const float* from = mem_.dq + at * mem_.width;
      int64_t width = mem_.width;
      if (!plan_.stages.additive) {
        transpose_out(d_, mem_.dq_t + at / kTile * kTile * s_.D + at % kTile, kTile, s_.D, hn::Set(d_, 1.0f),
                      mem_.stage, s_.D);
        from = mem_.stage;
        width = s_.D;
      }
      for (int64_t j = 0; j < std::min(kLanes, queries_ - at); ++j) {
        float* to = grad_.dq.at(b_, h_, t0_ + at + j);
        for (int64_t c = 0; c < s_.D; ++c) to[c] += from[j * width + c];
      }
    }
  }

  // Sums of keys that no more queries will come to.
  void add_dk(KeyRange keys) const { add_rows(keys, mem_.dk, mem_.width, grad_.dk); }
  void add_dv(KeyRange keys) const { add_rows(keys, mem_.dv, mem_.width_v, grad_.dv); }
  void add_rows(KeyRange keys, const float* sums, int64_t width, const View<float, 4>& to) const {
    if (!to) return;
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      const float* from = sums + (key - keys_.begin) * width;
      float* row = to.at(b_, hk_, key);
      for (int64_t c = 0; c < to.shape(3); ++c) row[c] += from[c];
    }
  }

  const AttentionPlan::Details& plan_;
  const AttentionShape& s_;
  const AttentionInputs& in_;
  const AttentionGradients& grad_;
  const BackwardPartials& partials_;
  const int64_t b_, hk_, chunk_;
  const KeyRange keys_;
  const int64_t block_;
  const bool plain_;
  const int threads_;
  const View<float, 4> d_bias_;  // [B,Hq,T,S], spread
  const bool d_bias_over_queries_;
  const BackwardScratch mem_;
  Progress* mine_ = nullptr;
  // The tasks whose turn comes first: the chunks of the head before this one. A chunk does not wait where it has
  // nothing to add, so each is asked. Where tasks share a bias: the one task before, which waits for its own at every
  // step.
  struct {
    const Progress* first = nullptr;
    int64_t stride = 0, count = 0;
  } earlier_;
  const F d_;
  Rows k_{}, v_{};          // of the task's keys
  KeyRange visited_{0, 0};  // those whose sums hold something
  KeyRange added_{0, 0};    // those whose sums were added with the last queries that see them
  int64_t step_ = 0;
  // The block of queries at work:
  const HeadStages* stages_ = nullptr;
  int64_t h_ = 0, t0_ = 0, queries_ = 0, tiles_n_ = 0;
  int64_t mixes_ = 0, mixed_ = 0;
  Ahead ahead_;
  bool queries_finite_ = true, fresh_ = false, last_visit_ = false;
  Tile tiles_[kMaxQueries / kTile];
  KeyGroup groups_[kMostGroups];
  QueryRange queries_of_groups_[kMostGroups][kMaxQueries / kTile];
};

void backward_chunk(const BackwardCall& call, int64_t b, int64_t hk, int64_t chunk, float* scratch) {
  BackwardChunk(call, b, hk, chunk, scratch).run();
}

}  // namespace heed::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(backward_chunk);

namespace {

// What the tasks left, added up in their order.
void add_partials(const AttentionPlan::Details& plan, const BackwardPartials& partials,
                  const AttentionGradients& grad) {
  const AttentionShape& s = plan.shape;
  for (int64_t i = 0; i < plan.blocking.key_chunks * partials.heads; ++i) {
    const int64_t h = i % s.Hq;
    if (grad.d_head_gate) grad.d_head_gate(h) += partials.gate[i];
    for (int64_t a = 0; grad.dw && a < s.D; ++a) grad.dw(h, a) += partials.w[i * partials.width + a];
  }
}

}  // namespace

void attention_backward(const AttentionPlan& of, const AttentionInputs& in, const AttentionGradients& grad,
                        Workspace& workspace, Parallel& parallel) noexcept {
  assert(workspace.bytes() >= of.workspace_bytes(parallel.threads()));
  const AttentionPlan::Details& plan = of.details();
  const AttentionShape& s = plan.shape;
  const int64_t heads = s.B * s.Hk, shared = backward_progress_count(plan);
  auto* progress = reinterpret_cast<Progress*>(workspace.data());
  const BackwardPartials partials(plan, reinterpret_cast<float*>(progress + shared));
  float* scratch = reinterpret_cast<float*>(progress + shared) + partials.floats;
  const int64_t floats = BackwardScratch(plan, nullptr).floats;
  for (int64_t i = 0; i < shared; ++i) new (progress + i) Progress();
  const BackwardCall call{plan, in, grad, partials, shared > 0 ? progress : nullptr, parallel.threads()};
  // By chunks first: a chunk waits for the one before it, and the first is the one that a causal mask leaves most to.
  parallel.for_each(heads * plan.blocking.key_chunks, [&](int64_t task, int worker) {
    const FlushDenormals flush;
    const int64_t head = task % heads;
    HWY_DYNAMIC_DISPATCH(backward_chunk)
    (call, head / s.Hk, head % s.Hk, task / heads, scratch + worker * floats);
  });
  add_partials(plan, partials, grad);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
