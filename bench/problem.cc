// SPDX-License-Identifier: Apache-2.0
#include "bench/problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heed::bench {

using kernels::AttentionPlan;

namespace {

// Normal deviates, or zeros without a generator; the elements lie in one piece.
template <size_t Rank>
void fill(const View<float, Rank>& x, Rng* rng) {
  std::generate_n(x.data(), x.size(), [&] { return rng ? rng->normal() : 0.0f; });
}

}  // namespace

// Memory that lives as long as the problem, with nothing in it.
template <class T, size_t Rank>
View<T, Rank> Problem::array(const Dims<Rank>& shape) {
  memory_.push_back(std::make_unique<Workspace>(static_cast<size_t>(element_count(shape)) * sizeof(T)));
  return {reinterpret_cast<T*>(memory_.back()->data()), shape};
}

// In the order of the case's layout, seen as [B,H,T,D].
View<float, 4> Problem::tensor(const Dims<4>& bhtd, Rng* rng) {
  const bool transposed = case_.layout != Layout::bhtd;
  const auto x = array<float>(transposed ? Dims<4>{bhtd[0], bhtd[2], bhtd[1], bhtd[3]} : bhtd);
  fill(x, rng);
  return transposed ? x.transposed(1, 2) : x;
}

// The same numbers in 16 bits.
template <class T>
kernels::KvView Problem::narrow(const View<float, 4>& wide) {
  const auto to = array<T>(wide.shape());
  std::transform(wide.data(), wide.data() + wide.size(), to.data(), [](float x) { return T::from(x); });
  return to;
}

// [B,blocks a batch]: the blocks in random order.
View<const int32_t, 2> Problem::block_table(int64_t blocks_a_batch, Rng& rng) {
  const auto table = array<int32_t>(Dims<2>{case_.B, blocks_a_batch});
  int32_t* order = table.data();
  std::iota(order, order + table.size(), 0);
  for (int64_t i = table.size(); i > 1; --i) {
    std::swap(order[i - 1], order[rng.below(static_cast<uint64_t>(i))]);
  }
  return table;
}

// The same rows where a table says, in blocks that divide S.
kernels::KvView Problem::paged(const View<float, 4>& rows, int64_t block, const View<const int32_t, 2>& table) {
  const auto& [B, Hk, S, D] = rows.shape();
  const auto pool = array<float>(Dims<4>{table.size(), Hk, block, D});
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < Hk; ++h)
      for (int64_t s = 0; s < S; ++s) std::copy_n(rows.at(b, h, s), D, pool.at(table(b, s / block), h, s % block));
  return kernels::KvView::paged(pool, table, S);
}

void Problem::lay_out(Rng& rng) {
  const auto& [B, H, Hk, T, S, D, layout, mask, keys, extra] = case_;
  View<float, 4> dq, dk, dv;
  if (layout == Layout::packed) {  // each token holds the heads of q, then of k, then of v
    const View<float, 4> qkv = tensor({B, H + 2 * Hk, T, D}, &rng), d_qkv = tensor({B, H + 2 * Hk, T, D}, nullptr);
    q_ = qkv.slice(1, 0, H), dq = d_qkv.slice(1, 0, H);
    k_ = qkv.slice(1, H, Hk), dk = d_qkv.slice(1, H, Hk);
    v_ = qkv.slice(1, H + Hk, Hk), dv = d_qkv.slice(1, H + Hk, Hk);
  } else {
    q_ = tensor({B, H, T, D}, &rng), dq = tensor({B, H, T, D}, nullptr);
    k_ = tensor({B, Hk, S, D}, &rng), dk = tensor({B, Hk, S, D}, nullptr);
    v_ = tensor({B, Hk, S, D}, &rng), dv = tensor({B, Hk, S, D}, nullptr);
  }
  out_ = tensor({B, H, T, D}, nullptr);
  d_out_ = tensor({B, H, T, D}, &rng);
  const auto stats = array<float>(Dims<4>{B, H, T, 2});
  inputs_ = {.q = q_, .k = k_, .v = v_};
  if (keys == DType::bf16) inputs_.k = narrow<BFloat16>(k_), inputs_.v = narrow<BFloat16>(v_);
  if (keys == DType::f16) inputs_.k = narrow<Float16>(k_), inputs_.v = narrow<Float16>(v_);
  outputs_ = {.out = out_};
  outputs_with_stats_ = {.out = out_, .stats = stats};
  gradients_ = {.out = out_, .stats = stats, .d_out = d_out_, .dq = dq, .dk = dk, .dv = dv};
}

void Problem::change_scores(Rng& rng) {
  const auto& [B, H, Hk, T, S, D, layout, mask, keys, extra] = case_;
  const Dims<4> scores{B, H, T, S};
  if (extra == Extra::alibi) {  // 2^(-8/H), 2^(-16/H), ...
    const auto slopes = array<float>(Dims<1>{H});
    for (int64_t h = 0; h < H; ++h) slopes(h) = std::exp2(-8 * static_cast<float>(h + 1) / static_cast<float>(H));
    options_.mask.alibi = kernels::Alibi::top_left({slopes.data(), static_cast<size_t>(H)});
  } else if (extra == Extra::dense) {
    const auto visible = array<bool>(scores);
    std::generate_n(visible.data(), visible.size(), [&] { return rng.uniform() >= 0.1f; });
    options_.mask.dense = {visible};
  } else if (extra == Extra::bias) {
    const auto bias = array<float>(scores), d_bias = array<float>(scores);
    fill(bias, &rng);
    fill(d_bias, nullptr);
    inputs_.bias = bias, gradients_.d_bias = d_bias;
  } else if (extra == Extra::dropout) {
    options_.dropout = {.rate = 0.1f, .seed = 1};
  } else if (extra == Extra::softcap) {
    options_.softcap = 30;
  } else if (extra == Extra::additive) {
    const auto w = array<float>(Dims<2>{H, D});
    fill(w, &rng);
    inputs_.w = w;
  }
}

void Problem::add_extra(Rng& rng) {
  const auto& [B, H, Hk, T, S, D, layout, mask, keys, extra] = case_;
  if (extra == Extra::top8) {
    outputs_.entropy = array<float>(Dims<3>{B, H, T});
    outputs_.top_weights = array<float>(Dims<4>{B, H, T, 8});
    outputs_.top_keys = array<int32_t>(Dims<4>{B, H, T, 8});
  } else if (extra == Extra::map256) {
    observations_.received = array<float>(Dims<3>{B, H, S});
    observations_.map_mean = array<float>(Dims<4>{B, H, 256, 256});
    observations_.map_max = array<float>(Dims<4>{B, H, 256, 256});
  } else if (extra == Extra::paged16 || extra == Extra::paged128) {
    const int64_t block = extra == Extra::paged16 ? 16 : 128;
    const auto table = block_table(S / block, rng);
    inputs_.k = paged(k_, block, table), inputs_.v = paged(v_, block, table);
  } else {
    change_scores(rng);
  }
}

Problem::Problem(const Case& c, Parallel& parallel) : case_(c), parallel_(parallel), lengths_(key_lengths(c)) {
  Rng rng(1);
  lay_out(rng);
  options_.mask = mask_of(c, lengths_);
  add_extra(rng);
  visibility_ = kernels::Visibility(options_.mask, c.B, c.T, c.S);
  forward_plan_ = AttentionPlan::forward(inputs_, outputs_, options_);
  stats_plan_ = AttentionPlan::forward(inputs_, outputs_with_stats_, options_);
  backward_plan_ = AttentionPlan::backward(inputs_, gradients_, options_);
  for (const AttentionPlan* plan : {&forward_plan_, &stats_plan_, &backward_plan_}) {
    workspace_.reserve(plan->workspace_bytes(parallel.threads()));
  }
  if (observations_.received) {
    observation_plan_ = kernels::ObservationPlan::make(inputs_, outputs_with_stats_.stats, observations_, options_);
    workspace_.reserve(observation_plan_.workspace_bytes(parallel.threads()));
  }
  if (c.extra != Extra::none) return;
  const UnfusedTensors tensors{q_, k_, v_, out_, d_out_, gradients_.dq, gradients_.dk, gradients_.dv};
  unfused_ = std::make_unique<Unfused>(tensors, visibility_, parallel);
}

void Problem::forward() {
  if (observations_.received) {
    forward_with_stats();
    kernels::attention_observe(observation_plan_, inputs_, outputs_with_stats_.stats, observations_, workspace_,
                               parallel_);
  } else {
    kernels::attention_forward(forward_plan_, inputs_, outputs_, workspace_, parallel_);
  }
}

void Problem::forward_with_stats() {
  kernels::attention_forward(stats_plan_, inputs_, outputs_with_stats_, workspace_, parallel_);
}

void Problem::backward() { kernels::attention_backward(backward_plan_, inputs_, gradients_, workspace_, parallel_); }

std::vector<Bytes> Problem::keys_and_values() const {
  const auto bytes = [](const kernels::KvView& x) {
    const auto count = static_cast<size_t>(element_count(x.shape()));
    return Bytes(static_cast<const std::byte*>(x.data()), count * (x.dtype() == DType::f32 ? 4 : 2));
  };
  return {bytes(inputs_.k), bytes(inputs_.v)};
}

}  // namespace heed::bench
