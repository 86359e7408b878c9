// Backward, recomputing the weights from the row statistics of forward. For a block of queries and a block of keys,
//   E^T  <- 2^(K Q^T - m)                  (the weights, times the row's sum l)
//   dS^T <- E^T (V dO'^T - delta')         dO' = scale / l dO,  delta' = scale / l rowsum(dO out)
//   dV   <- dV + E^T (dO / l);   dK <- dK + dS^T Q;   dQ^T <- dQ^T + K^T dS^T
// A task owns the dK and dV of a chunk of keys of one key head. Where the keys were cut into several chunks, these add
// to each row of dq in their order: a task follows the one before it from block to block of queries. Division by l and
// the scale go into the copies of dO, so that no score pays for them.
#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/kernels/attention/backward.cc"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "heed/kernels/attention/backward.h"
#include "heed/kernels/attention/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels::HWY_NAMESPACE {

// A tile's numbers a query, and where its rows of E^T and dS^T go.
struct TileMemory {
  const float *q_t, *do_t, *max, *delta, *low, *high;
  float *weights, *d_scores;
};

// E^T and dS^T for R keys; `key` is the first one's index, for the mask.
template <int R, int NV, bool Masked>
HWY_INLINE void weight_rows(F d, const AttentionShape& s, Rows k, Rows v, int64_t key, const TileMemory& mem,
                            float* HWY_RESTRICT weights, float* HWY_RESTRICT d_scores) {
  V acc[R][NV];
  product_rows<R, NV>(d, k.data, k.stride, s.D, mem.q_t, acc);
  for (int n = 0; n < NV; ++n) {
    const V max = hn::Load(d, mem.max + n * kLanes);
    V es[R];
    for (int r = 0; r < R; ++r) es[r] = hn::Sub(acc[r][n], max);
    exp2(d, es);
    for (int r = 0; r < R; ++r) {
      V e = es[r];
      if constexpr (Masked) {
        e = hn::IfThenElseZero(seen(d, key + r, mem.low + n * kLanes, mem.high + n * kLanes), e);
      }
      hn::Store(e, d, weights + r * kTile + n * kLanes);
    }
  }
  product_rows<R, NV>(d, v.data, v.stride, s.Dv, mem.do_t, acc);
  for (int n = 0; n < NV; ++n) {
    const V delta = hn::Load(d, mem.delta + n * kLanes);
    for (int r = 0; r < R; ++r) {
      const V e = hn::Load(d, weights + r * kTile + n * kLanes);
      V ds = hn::Mul(e, hn::Sub(acc[r][n], delta));
      // A hidden value may be NaN, and so dP here.
      if constexpr (Masked) {
        ds = hn::IfThenElseZero(seen(d, key + r, mem.low + n * kLanes, mem.high + n * kLanes), ds);
      }
      hn::Store(ds, d, d_scores + r * kTile + n * kLanes);
    }
  }
}

// The same for `keys` keys from `first` on.
template <int NV, bool Masked>
HWY_NOINLINE void weight_range(F d, const AttentionShape& s, Rows k, Rows v, int64_t first, int64_t keys,
                               const TileMemory& mem, float* weights, float* d_scores) {
  int64_t i = 0;
  for (; i + 4 <= keys; i += 4) {
    weight_rows<4, NV, Masked>(d, s, {k.row(i), k.stride}, {v.row(i), v.stride}, first + i, mem, weights + i * kTile,
                               d_scores + i * kTile);
  }
  for (; i < keys; ++i) {
    weight_rows<1, NV, Masked>(d, s, {k.row(i), k.stride}, {v.row(i), v.stride}, first + i, mem, weights + i * kTile,
                               d_scores + i * kTile);
  }
}

// The same for the keys of the current block that the tile sees: k, v and the results begin with the first of them.
// Only at the ends of its range are there keys that not all of its queries see.
template <int NV>
HWY_INLINE void weight_tile(F d, const AttentionShape& s, Rows k, Rows v, const Tile& tile, const TileMemory& mem) {
  const int64_t ends[] = {0, tile.clear_begin(), tile.clear_end(), tile.rows};
  for (int part = 0; part < 3; ++part) {
    const int64_t i = ends[part], keys = ends[part + 1] - i;
    if (keys == 0) continue;
    (part == 1 ? weight_range<NV, false> : weight_range<NV, true>)(d, s, {k.row(i), k.stride}, {v.row(i), v.stride},
                                                                   tile.first + i, keys, mem, mem.weights + i * kTile,
                                                                   mem.d_scores + i * kTile);
  }
}

// to[r][c] += sum_query weights[r][query] rows[query][c] for R keys and NV vectors of columns, over all tiles that see
// one of these keys: dV += E^T dO, dK += dS^T Q.
template <int R, int NV>
HWY_INLINE void spread_rows(F d, const Tile* tiles, int64_t tiles_n, int64_t key, const float* weights,
                            int64_t tile_floats, const float* rows, int64_t width, float* HWY_RESTRICT to) {
  V acc[R][NV];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < NV; ++n) acc[r][n] = hn::Load(d, to + r * width + n * kLanes);
  }
  for (int64_t t = 0; t < tiles_n; ++t) {
    const Tile& tile = tiles[t];
    if (tile.rows == 0 || tile.first >= key + R || tile.first + tile.rows <= key) continue;
    const float* HWY_RESTRICT w = weights + t * tile_floats;
    const float* HWY_RESTRICT x = rows + t * kTile * width;
    for (int64_t q = 0; q < tile.count; ++q, x += width) {
      V y[NV];
      for (int n = 0; n < NV; ++n) y[n] = hn::Load(d, x + n * kLanes);
      for (int r = 0; r < R; ++r) {
        const V e = hn::Set(d, w[r * kTile + q]);
        for (int n = 0; n < NV; ++n) acc[r][n] = hn::MulAdd(e, y[n], acc[r][n]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < NV; ++n) hn::Store(acc[r][n], d, to + r * width + n * kLanes);
  }
}

template <int R>
HWY_NOINLINE void spread_columns(F d, const Tile* tiles, int64_t tiles_n, int64_t key, const float* weights,
                                 int64_t tile_floats, const float* rows, int64_t columns, int64_t width, float* to) {
  int64_t c = 0;
  for (; c + kLanes < columns; c += 2 * kLanes) {
    spread_rows<R, 2>(d, tiles, tiles_n, key, weights, tile_floats, rows + c, width, to + c);
  }
  if (c < columns) spread_rows<R, 1>(d, tiles, tiles_n, key, weights, tile_floats, rows + c, width, to + c);
}

// The same where Q or dO hold NaN or infinity and some pairs are hidden: hidden pairs are left out.
inline void spread_carefully(F d, const Tile* tiles, int64_t tiles_n, int64_t key, const float* weights,
                             int64_t tile_floats, const float* rows, int64_t width, const float* low, const float* high,
                             float* to) {
  const float at = static_cast<float>(key);
  for (int64_t c = 0; c < width; c += kLanes) {
    V acc = hn::Load(d, to + c);
    for (int64_t t = 0; t < tiles_n; ++t) {
      if (tiles[t].rows == 0) continue;
      for (int64_t q = 0; q < tiles[t].count; ++q) {
        const int64_t i = t * kTile + q;
        if (at < low[i] || at >= high[i]) continue;
        acc = hn::MulAdd(hn::Set(d, weights[t * tile_floats + q]), hn::Load(d, rows + i * width + c), acc);
      }
    }
    hn::Store(acc, d, to + c);
  }
}

HWY_INLINE float dot(F d, const float* a, const float* b, int64_t n) {
  V acc = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) acc = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), acc);
  float sum = hn::GetLane(hn::SumOfLanes(d, acc));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// One task: a chunk of keys of one key head, against all queries of its group of heads.
class BackwardChunk {
 public:
  BackwardChunk(const BackwardCall& call, int64_t b, int64_t hk, int64_t chunk, float* scratch)
      : plan_(call.plan),
        s_(call.plan.shape()),
        in_(call.in),
        grad_(call.grad),
        b_(b),
        hk_(hk),
        keys_{chunk * plan_.blocking().key_chunk, std::min(s_.S, (chunk + 1) * plan_.blocking().key_chunk)},
        block_(backward_key_block(s_)),
        mem_(call.plan, scratch),
        mine_(call.progress ? call.progress + (chunk * s_.B + b) * s_.Hk + hk : nullptr),
        before_(mine_ && chunk > 0 ? mine_ - s_.B * s_.Hk : nullptr) {}

  void run() {
    const int64_t keys = keys_.end - keys_.begin;
    k_ = kv_rows(d_, in_.k, b_, hk_, keys_.begin, keys, mem_.keys, plan_.blocking().gather);
    v_ = kv_rows(d_, in_.v, b_, hk_, keys_.begin, keys, mem_.values, plan_.blocking().gather);
    std::memset(mem_.dk, 0, static_cast<size_t>(keys * mem_.width) * sizeof(float));
    std::memset(mem_.dv, 0, static_cast<size_t>(keys * mem_.width_v) * sizeof(float));
    const int64_t group = s_.Hq / s_.Hk;
    for (int64_t h = hk_ * group; h < (hk_ + 1) * group; ++h) {
      // From the end: under a causal mask all chunks have something to do there, and none waits for another's start.
      const int64_t queries = plan_.blocking().queries;
      for (int64_t t0 = (ceil_div(s_.T, queries) - 1) * queries; t0 >= 0; t0 -= queries) visit_queries(h, t0);
    }
    add_rows(mem_.dk, mem_.width, s_.D, grad_.dk);
    add_rows(mem_.dv, mem_.width_v, s_.Dv, grad_.dv);
  }

 private:
  void visit_queries(int64_t h, int64_t t0) {
    queries_ = std::min(plan_.blocking().queries, s_.T - t0);
    tiles_n_ = ceil_div(queries_, kTile);
    const KeyRange range = start_tiles(plan_, b_, t0, queries_, keys_, mem_.low, mem_.high, tiles_);
    if (!range.empty()) copy_queries(h, t0);
    for (int64_t first = range.begin; first < range.end; first += block_) {
      visit_keys(first, std::min(block_, range.end - first));
    }
    ++step_;
    if (before_) before_->wait_for(step_);
    if (grad_.dq && !range.empty()) add_dq(h, t0);
    if (mine_) mine_->reach(step_);
  }

  // Rows of q and dO / l as they stand, and their scaled transposes. A row that sees nothing becomes zeros throughout,
  // whatever stands in it.
  void copy_queries(int64_t h, int64_t t0) {
    const int64_t padded = tiles_n_ * kTile;
    for (int64_t i = 0; i < padded; ++i) {
      const float* stats = i < queries_ ? grad_.stats.at(b_, h, t0 + i) : nullptr;
      float *q = mem_.q + i * mem_.width, *d_out = mem_.d_out + i * mem_.width_v;
      std::memset(q, 0, static_cast<size_t>(mem_.width) * sizeof(float));
      std::memset(d_out, 0, static_cast<size_t>(mem_.width_v) * sizeof(float));
      const bool live = stats && stats[1] != 0;
      mem_.max[i] = live ? stats[0] : FLT_MAX;
      mem_.delta[i] = 0;
      if (!live) continue;
      const float inverse = 1 / stats[1];
      const float *from = grad_.d_out.at(b_, h, t0 + i), *out = grad_.out.at(b_, h, t0 + i);
      std::memcpy(q, in_.q.at(b_, h, t0 + i), static_cast<size_t>(s_.D) * sizeof(float));
      for (int64_t c = 0; c < s_.Dv; ++c) d_out[c] = from[c] * inverse;
      mem_.delta[i] = plan_.scale() * dot(d_, d_out, out, s_.Dv);
    }
    const V scale = hn::Set(d_, plan_.scale()), scale2 = hn::Set(d_, plan_.scale() * std::numbers::log2e_v<float>);
    for (int64_t i = 0; i < padded; i += kLanes) {
      const int64_t tile = i / kTile * kTile, lane = i % kTile;
      transpose_in(d_, mem_.q + i * mem_.width, mem_.width, s_.D, scale2, mem_.q_t + tile * s_.D + lane, kTile);
      transpose_in(d_, mem_.d_out + i * mem_.width_v, mem_.width_v, s_.Dv, scale, mem_.do_t + tile * s_.Dv + lane,
                   kTile);
    }
    queries_finite_ = plan_.visibility().everything() || (all_finite(d_, mem_.q, mem_.width, queries_, s_.D) &&
                                                          all_finite(d_, mem_.d_out, mem_.width_v, queries_, s_.Dv));
  }

  void visit_keys(int64_t first, int64_t count) {
    const Rows k{k_.row(first - keys_.begin), k_.stride}, v{v_.row(first - keys_.begin), v_.stride};
    bool any_masked = false, any_cut = false;
    for (int64_t i = 0; i < tiles_n_; ++i) {
      tiles_[i].enter(first, count);
      any_masked |= tiles_[i].masked;
      any_cut |= tiles_[i].rows < count;
      if (tiles_[i].rows > 0) weigh_tile(i, k, v, first, count);
    }
    // A weight that is zero because its pair is hidden must not meet NaN or infinity.
    if ((any_masked || any_cut) && !queries_finite_) {
      spread_block_carefully(first, count);
    } else {
      spread_block(first, count);
    }
    if (!grad_.dq) return;
    const bool careful = any_masked && !all_finite(d_, k.data, k.stride, count, s_.D);
    for (int64_t i = 0; i < tiles_n_; ++i) {
      if (tiles_[i].rows > 0) mix_tile(i, {k.row(tiles_[i].first - first), k.stride}, first, careful);
    }
  }

  // E^T and dS^T of one tile; rows of keys that it does not see are zero.
  void weigh_tile(int64_t i, Rows k, Rows v, int64_t first, int64_t count) {
    const Tile& tile = tiles_[i];
    const int64_t at = i * kTile, skipped = tile.first - first, last = skipped + tile.rows;
    float *weights = mem_.weights + at * block_, *d_scores = mem_.d_scores + at * block_;
    for (float* p : {weights, d_scores}) {
      std::memset(p, 0, static_cast<size_t>(skipped * kTile) * sizeof(float));
      std::memset(p + last * kTile, 0, static_cast<size_t>((count - last) * kTile) * sizeof(float));
    }
    const TileMemory mem{mem_.q_t + at * s_.D,
                         mem_.do_t + at * s_.Dv,
                         mem_.max + at,
                         mem_.delta + at,
                         mem_.low + at,
                         mem_.high + at,
                         weights + skipped * kTile,
                         d_scores + skipped * kTile};
    const Rows seen_k{k.row(skipped), k.stride}, seen_v{v.row(skipped), v.stride};
    (tile.vectors == 2 ? weight_tile<2> : weight_tile<1>)(d_, s_, seen_k, seen_v, tile, mem);
  }

  // dV and dK of the block's keys, six at a time.
  void spread_block(int64_t first, int64_t count) {
    for (int64_t i = 0; i < count;) {
      const int64_t left = count - i;
      if (left >= 6) {
        spread<6>(first, i);
        i += 6;
      } else if (left >= 4) {
        spread<4>(first, i);
        i += 4;
      } else {
        spread<1>(first, i);
        i += 1;
      }
    }
  }

  template <int R>
  void spread(int64_t first, int64_t i) {
    const int64_t tile_floats = block_ * kTile, row = first - keys_.begin + i;
    if (grad_.dv) {
      spread_columns<R>(d_, tiles_, tiles_n_, first + i, mem_.weights + i * kTile, tile_floats, mem_.d_out, s_.Dv,
                        mem_.width_v, mem_.dv + row * mem_.width_v);
    }
    if (grad_.dk) {
      spread_columns<R>(d_, tiles_, tiles_n_, first + i, mem_.d_scores + i * kTile, tile_floats, mem_.q, s_.D,
                        mem_.width, mem_.dk + row * mem_.width);
    }
  }

  void spread_block_carefully(int64_t first, int64_t count) {
    const int64_t tile_floats = block_ * kTile;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = first - keys_.begin + i;
      spread_carefully(d_, tiles_, tiles_n_, first + i, mem_.weights + i * kTile, tile_floats, mem_.d_out, mem_.width_v,
                       mem_.low, mem_.high, mem_.dv + row * mem_.width_v);
      spread_carefully(d_, tiles_, tiles_n_, first + i, mem_.d_scores + i * kTile, tile_floats, mem_.q, mem_.width,
                       mem_.low, mem_.high, mem_.dk + row * mem_.width);
    }
  }

  void mix_tile(int64_t i, Rows k, int64_t first, bool careful) {
    Tile& tile = tiles_[i];
    const int64_t at = i * kTile;
    const float* d_scores = mem_.d_scores + at * block_ + (tile.first - first) * kTile;
    float* dq = mem_.dq_t + at * s_.D;
    if (!tile.started) std::memset(dq, 0, static_cast<size_t>(kTile * s_.D) * sizeof(float));
    if (careful && tile.masked) {
      (tile.vectors == 2 ? mix_carefully<2, Before::kept>
                         : mix_carefully<1, Before::kept>)(d_, k, tile.first, tile.rows, s_.D, d_scores, nullptr,
                                                           mem_.low + at, mem_.high + at, dq);
    } else {
      (tile.vectors == 2 ? mix<2, Before::kept> : mix<1, Before::kept>)(d_, k, tile.rows, s_.D, d_scores, nullptr, dq);
    }
    tile.started = true;
  }

  void add_dq(int64_t h, int64_t t0) {
    for (int64_t at = 0; at < queries_; at += kLanes) {
      if (!tiles_[at / kTile].started) continue;
      const float* from = mem_.dq_t + at / kTile * kTile * s_.D + at % kTile;
      transpose_out(d_, from, kTile, s_.D, hn::Set(d_, 1.0f), mem_.stage, s_.D);
      for (int64_t j = 0; j < std::min(kLanes, queries_ - at); ++j) {
        float* to = grad_.dq.at(b_, h, t0 + at + j);
        for (int64_t c = 0; c < s_.D; ++c) to[c] += mem_.stage[j * s_.D + c];
      }
    }
  }

  void add_rows(const float* from, int64_t width, int64_t columns, const View<float, 4>& to) {
    if (!to) return;
    for (int64_t key = keys_.begin; key < keys_.end; ++key, from += width) {
      float* row = to.at(b_, hk_, key);
      for (int64_t c = 0; c < columns; ++c) row[c] += from[c];
    }
  }

  const AttentionPlan& plan_;
  const AttentionShape& s_;
  const AttentionInputs& in_;
  const AttentionGradients& grad_;
  const int64_t b_, hk_;
  const KeyRange keys_;
  const int64_t block_;
  const BackwardScratch mem_;
  Progress* const mine_;
  const Progress* const before_;
  const F d_;
  Rows k_{}, v_{};  // of the task's keys
  int64_t queries_ = 0, tiles_n_ = 0, step_ = 0;
  bool queries_finite_ = true;
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

void attention_backward(const AttentionPlan& plan, const AttentionInputs& in, const AttentionGradients& grad,
                        Workspace& workspace, Parallel& parallel) noexcept {
  assert(workspace.bytes() >= plan.workspace_bytes(parallel.threads()));
  const AttentionShape& s = plan.shape();
  const int64_t heads = s.B * s.Hk, shared = backward_progress_count(plan);
  auto* progress = reinterpret_cast<Progress*>(workspace.data());
  float* scratch = reinterpret_cast<float*>(progress + shared);
  const int64_t floats = BackwardScratch(plan, nullptr).floats;
  for (int64_t i = 0; i < shared; ++i) new (progress + i) Progress();
  const BackwardCall call{plan, in, grad, shared > 0 ? progress : nullptr};
  // By chunks first: a chunk waits for the one before it, and the first is the one that a causal mask leaves most to.
  parallel.for_each(heads * plan.blocking().key_chunks, [&](int64_t task, int worker) {
    const int64_t head = task % heads;
    HWY_DYNAMIC_DISPATCH(backward_chunk)
    (call, head / s.Hk, head % s.Hk, task / heads, scratch + worker * floats);
  });
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
