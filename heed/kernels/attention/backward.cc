// SPDX-License-Identifier: Apache-2.0
// Backward, recomputing the weights from the row statistics of forward. For a block of queries and a block of keys,
//   E^T  <- 2^(K Q^T - m)                  (the weights, times the row's sum l)
//   dS^T <- E^T (V dO'^T - delta')         dO' = scale / l dO,  delta' = scale / l rowsum(dO out)
//   dV   <- dV + E^T (dO / l);   dK <- dK + dS^T Q;   dQ^T <- dQ^T + K^T dS^T
// A task owns the dK and dV of a chunk of keys of one key head. Where a head's keys are in several chunks, these are
// accumulated into each row of dq in order: a task follows the one before it from one block of queries to the next. The
// division by l and the scale are applied to the copies of dO, not to every score. With the other stages (softcap,
// bias, dropout, gate g ...) it is
//   E^T  <- 2^(Z - m), Z the staged score;   dZ^T <- E^T (g keep V dO'^T - delta'),   dO' = dO / l / (1 - rate)
//   dV   <- dV + (g keep E^T) dO';           dS^T <- scale cap'(S) dZ^T;              dbias <- dbias + dZ
#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/attention/backward.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/attention/backward.h"
#include "heed/kernels/attention/backward_sums-inl.h"
#include "heed/kernels/attention/backward_tiles-inl.h"
#include "heed/kernels/attention/flush_denormals.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// One task: a chunk of keys of one key head, and all queries of the heads that share it.
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
        plain_(plan_.stages.plain_backward()),
        threads_(call.threads),
        d_bias_(broadcast(grad_.d_bias, s_)),
        d_bias_over_queries_(d_bias_ && d_bias_.stride(2) == 0),
        mem_(call.plan, scratch),
        key_gradients_(call, b, hk, keys_, mem_) {
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
    const int64_t group = s_.Hq / s_.Hk;
    k_ = kv_rows(d_, {in_.k, b_, hk_, keys_}, plan_.blocking.gather ? mem_.keys : nullptr);
    v_ = kv_rows(d_, {in_.v, b_, hk_, keys_}, plan_.blocking.gather ? mem_.values : nullptr);
    if (plan_.stages.bias) std::fill_n(mem_.d_bias_keys, group * plan_.blocking.key_chunk, 0.0f);
    for (int64_t h = hk_ * group; h < (hk_ + 1) * group; ++h) {
      if (plan_.stages.gate) *gate_partial(h) = 0;
      if (plan_.stages.additive) std::fill_n(w_partial(h), partials_.width, 0.0f);
    }
    // From the end: under a causal mask all chunks have work there, and none waits for another to start.
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
    key_gradients_.finish();
  }

 private:
  int64_t last_block() const { return (ceil_div(s_.T, plan_.blocking.queries) - 1) * plan_.blocking.queries; }
  int64_t queries_from(int64_t t0) const { return std::min(plan_.blocking.queries, s_.T - t0); }

  // Until the earlier tasks have reached this step.
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
    const KeyRange range = start_tiles(plan_, {b_, h, t0, queries_}, keys_, {mem_.low, mem_.high}, tiles_);
    if (!range.empty()) {
      copy_queries();
      key_gradients_.begin_visit(range, queries_finite_, last_visit_);
      parts_ = ceil_div(range.end - range.begin, block_) * tiles_n_;
      part_ = 0;
    }
    for (int64_t first = range.begin; first < range.end; first += block_) {
      visit_keys({first, std::min(first + block_, range.end)});
    }
    if (plan_.stages.gate && !range.empty()) {
      for (int64_t i = 0; i < queries_; ++i) *gate_partial(h) += mem_.gate[i];
    }
    if (!grad_.dq || range.empty()) return;
    wait();
    add_dq();
  }

  // Copies the rows of q and of dO / l, and transposes them, scaled. A row that sees nothing becomes zeros, whatever it
  // holds.
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
      transpose_in(d_, {mem_.q + i * mem_.width, mem_.width}, s_.D, scale_q, {mem_.q_t + tile * s_.D + lane, kTile});
      transpose_in(d_, {mem_.d_out + i * mem_.width_v, mem_.width_v}, s_.Dv, scale,
                   {mem_.do_t + tile * s_.Dv + lane, kTile});
    }
    load_stage_scratch(plan_, in_, *stages_, {b_, h_, t0_, padded}, mem_.stages);
    if (plan_.stages.gate) std::fill_n(mem_.gate, padded, 0.0f);
    if (!plan_.stages.additive) return;
    std::fill_n(mem_.dq, padded * mem_.width, 0.0f);
    for (int64_t a = 0; a < mem_.width; ++a) mem_.w[a] = a < s_.D ? in_.w(h_, a) : 0;
  }

  void visit_keys(KeyRange block) {
    const int64_t count = block.end - block.begin;
    const Rows k = k_.from(block.begin - keys_.begin);
    bool any_masked = stages_->hides(), any_cut = false;
    for (int64_t i = 0; i < tiles_n_; ++i) {
      tiles_[i].enter(block.begin, count);
      any_masked |= tiles_[i].masked;
      any_cut |= tiles_[i].rows < count;
      if (tiles_[i].rows > 0) weigh_tile(i, block);
    }
    // A weight that is zero because its pair is masked must not be multiplied by NaN or infinity.
    const bool careful_queries = (any_masked || any_cut) && !queries_finite_;
    if (careful_queries) {
      accumulate_carefully(block);
    } else {
      key_gradients_.accumulate({tiles_, static_cast<size_t>(tiles_n_)}, block, !any_masked && !any_cut);
    }
    const bool keys_matter = plan_.stages.additive ? any_masked : any_masked && grad_.dq;
    const bool keys_finite = !keys_matter || all_finite(d_, {k, count, s_.D});
    if (plan_.stages.additive) {
      const bool careful = any_masked && !(keys_finite && queries_finite_);
      for (int64_t i = 0; i < tiles_n_; ++i) {
        if (tiles_[i].rows > 0) accumulate_additive(i, block, careful);
      }
    } else if (grad_.dq) {
      for (int64_t i = 0; i < tiles_n_; ++i) {
        if (tiles_[i].rows > 0) accumulate_dq(i, block, !keys_finite);
      }
    }
    key_gradients_.end_block(block, careful_queries);
  }

  // E^T and dS^T of one tile over a block of keys; rows of keys that it does not see are zero.
  void weigh_tile(int64_t i, KeyRange block) {
    Tile& tile = tiles_[i];
    if (stages_->hides() && !load_extra_of(i)) tile.rows = 0;  // nothing is visible in this block
    const int64_t at = i * kTile, count = block.end - block.begin;
    const int64_t skipped = tile.first - block.begin, last = skipped + tile.rows;
    float *weights = mem_.weights + at * block_, *d_scores = mem_.d_scores + at * block_;
    for (float* p : {weights, d_scores}) {
      std::memset(p, 0, static_cast<size_t>(skipped * kTile) * sizeof(float));
      std::memset(p + last * kTile, 0, static_cast<size_t>((count - last) * kTile) * sizeof(float));
    }
    if (tile.rows == 0) return;
    const BackwardTile mem{.k = keys_seen_by(tile),
                           .v = v_.from(tile.first - keys_.begin),
                           .D = s_.D,
                           .Dv = s_.Dv,
                           .q_t = mem_.q_t + at * s_.D,
                           .do_t = mem_.do_t + at * s_.Dv,
                           .max = mem_.max + at,
                           .delta = mem_.delta + at,
                           .hiding = hiding(i),
                           .weights = weights + skipped * kTile,
                           .d_scores = d_scores + skipped * kTile};
    if (plain_) {
      prefetch_keys(i, block);
      (tile.vectors == 2 ? weight_tile<2> : weight_tile<1>)(d_, tile, mem, prefetcher_);
    } else {
      weigh_tile_in_stages(i, mem);
    }
  }

  void weigh_tile_in_stages(int64_t i, const BackwardTile& mem) {
    const Tile& tile = tiles_[i];
    const int64_t at = i * kTile;
    const ScoreStages& wanted = plan_.stages;
    for (int64_t n = 0; wanted.dropout.on() && n < tile.vectors * kLanes; n += kLanes) {
      draw_dropout(d_, *stages_, t0_ + at + n, tile.first, tile.rows, mem_.stages.keep + n);
    }
    const BackwardStages stages{.head = *stages_,
                                .position = mem_.stages.position + at,
                                .extra = mem_.stages.extra,
                                .keep = wanted.dropout.on() ? mem_.stages.keep : nullptr,
                                .w = wanted.additive ? mem_.stages.w : nullptr,
                                .only_q = wanted.additive && tile.count == 1 ? mem_.q + at * mem_.width : nullptr,
                                .scale = plan_.scale,
                                .gate = in_.head_gate ? in_.head_gate(h_) : 1.0f,
                                .d_bias = d_bias_ ? mem_.d_bias : nullptr,
                                .gate_sum = wanted.gate ? mem_.gate + at : nullptr};
    (tile.vectors == 2 ? staged_weight_tile<2> : staged_weight_tile<1>)(d_, tile, mem, stages);
    if (d_bias_) add_d_bias(i);
  }

  Rows keys_seen_by(const Tile& tile) const { return k_.from(tile.first - keys_.begin); }

  bool load_extra_of(int64_t i) {
    return load_extra(d_, *stages_, tiles_[i], t0_ + i * kTile, mem_.stage, mem_.stages.extra);
  }

  Hiding hiding(int64_t i) const {
    return {mem_.low + i * kTile, mem_.high + i * kTile, stages_->hides() ? mem_.stages.extra : nullptr};
  }

  // Accumulates dZ of one tile into d_bias; where that is broadcast over queries, into a row of the task's own first.
  void add_d_bias(int64_t i) {
    const Tile& tile = tiles_[i];
    for (int64_t n = 0; n < tile.count; n += kLanes) {
      transpose_out(d_, {mem_.d_bias + n, kTile}, tile.rows, hn::Set(d_, 1.0f), {mem_.stage, tile.rows});
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

  // dK and dV where Q or dO hold NaN or infinity and some pairs are masked.
  void accumulate_carefully(KeyRange block) {
    for (int64_t i = 0; i < tiles_n_; ++i) {
      if (tiles_[i].rows == 0) continue;
      if (stages_->hides()) load_extra_of(i);
      key_gradients_.accumulate_carefully(tiles_[i], i, block, hiding(i));
    }
  }

  // dq, dk and dw of the additive score, of one tile.
  void accumulate_additive(int64_t i, KeyRange block, bool careful) {
    Tile& tile = tiles_[i];
    const int64_t at = i * kTile;
    if (careful) {
      if (stages_->hides()) load_extra_of(i);
      mark_hidden(i);
    }
    const AdditivePairs pairs{.q = mem_.q + at * mem_.width,
                              .queries = tile.count,
                              .k = keys_seen_by(tile),
                              .keys = tile.rows,
                              .columns = s_.D,
                              .width = mem_.width,
                              .w = mem_.w,
                              .ds = mem_.d_scores + at * block_ + (tile.first - block.begin) * kTile,
                              .hidden = careful ? mem_.hidden : nullptr};
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

  // dQ^T of one tile.
  void accumulate_dq(int64_t i, KeyRange block, bool careful) {
    Tile& tile = tiles_[i];
    const int64_t at = i * kTile;
    const WeightedSum sum{.rows = keys_seen_by(tile),
                          .keys = tile.rows,
                          .columns = s_.D,
                          .weights = mem_.d_scores + at * block_ + (tile.first - block.begin) * kTile,
                          .factor = nullptr,
                          .out = mem_.dq_t + at * s_.D};
    prefetch_rows_of_next(part_++);
    const bool hides = careful && (tile.masked || stages_->hides());
    if (hides && stages_->hides()) load_extra_of(i);
    with_before(tile.vectors, tile.started ? Before::kept : Before::dropped, [&]<int NV, Before B>() HWY_ATTR {
      hides ? weighted_sum_carefully<NV, B>(d_, sum, tile.first, hiding(i)) : weighted_sum<NV, B>(d_, sum, prefetcher_);
    });
    tile.started = true;
  }

  // Beside product i of parts_ that a visit makes of dQ: the rows of dq that it ends with, and those of q, dO and out
  // that the next visit begins with.
  void prefetch_rows_of_next(int64_t i) {
    prefetcher_.start(s_.D / kTileRows);
    prefetcher_.add_part(grad_.dq.at(b_, h_, t0_), grad_.dq.stride(2), queries_, s_.D, {i, i + 1, parts_});
    const Visit next = next_visit();
    if (next.b == s_.B || (last_visit_ && !plan_.blocking.next_head)) return;
    int64_t m = 0;
    for (const View<const float, 4>* rows : {&in_.q, &grad_.d_out, &grad_.out}) {
      prefetcher_.add_part(rows->at(next.b, next.h, next.t0), rows->stride(2), queries_from(next.t0), rows->shape(3),
                           part_of_list(i, parts_, m++, 3));
    }
  }

  // Beside the scores of tile i in the last visit: the gradients of the block's keys, and the keys and values that the
  // next head begins with.
  void prefetch_keys(int64_t i, KeyRange keys) {
    prefetcher_.start(2 * (keys.end - keys.begin) / kTileRows);
    if (!last_visit_ || !plan_.blocking.next_head) return;
    int64_t m = 0;
    for (const View<float, 4>* rows : {&grad_.dk, &grad_.dv}) {
      const Part part = part_of_list(i, tiles_n_, m++, 4);
      if (*rows) {
        prefetcher_.add_part(rows->at(b_, hk_, keys.begin), rows->stride(2), keys.end - keys.begin, rows->shape(3),
                             part);
      }
    }
    const Visit next = next_visit();
    if (next.b == s_.B || plan_.blocking.gather) return;
    for (const KvView* rows : {&in_.k, &in_.v}) {
      prefetcher_.add_part(rows->row(next.b, next.h / (s_.Hq / s_.Hk), keys_.begin), rows->strides()[2],
                           std::min(block_, keys_.end - keys_.begin), rows->shape(3),
                           part_of_list(i, tiles_n_, m++, 4));
    }
  }

  // The visit after this one: the heads of a group in order, then the block of queries before; then the next key head
  // that this thread is likely to take, or b = B where there is none.
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
        transpose_out(d_, {mem_.dq_t + at / kTile * kTile * s_.D + at % kTile, kTile}, s_.D, hn::Set(d_, 1.0f),
                      {mem_.stage, s_.D});
        from = mem_.stage;
        width = s_.D;
      }
      for (int64_t j = 0; j < std::min(kLanes, queries_ - at); ++j) {
        float* to = grad_.dq.at(b_, h_, t0_ + at + j);
        for (int64_t c = 0; c < s_.D; ++c) to[c] += from[j * width + c];
      }
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
  const View<float, 4> d_bias_;  // [B,Hq,T,S], broadcast
  const bool d_bias_over_queries_;
  const BackwardScratch mem_;
  KeyGradients key_gradients_;
  Progress* mine_ = nullptr;
  // The tasks that accumulate before this one: the earlier chunks of the head. A chunk that has nothing to add does not
  // wait, so this waits for each of them. Where tasks share a bias: the one task before, which itself waits at every
  // step.
  struct {
    const Progress* first = nullptr;
    int64_t stride = 0, count = 0;
  } earlier_;
  const F d_;
  Rows k_{}, v_{};  // of the task's keys
  int64_t step_ = 0;
  // The current visit: a block of queries of one head.
  const HeadStages* stages_ = nullptr;
  int64_t h_ = 0, t0_ = 0, queries_ = 0, tiles_n_ = 0;
  int64_t parts_ = 0, part_ = 0;  // products of dQ, over which prefetches are divided
  Prefetcher prefetcher_;
  bool queries_finite_ = true, last_visit_ = false;
  Tile tiles_[kMaxQueries / kTile];
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

// Reduces the partial sums of the tasks, in their order.
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
  // Chunk by chunk over all heads: a chunk waits for the one before it, and under a causal mask the first has the most
  // work.
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
