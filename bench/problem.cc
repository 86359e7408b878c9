#include "bench/problem.h"

#include <algorithm>

namespace heed::bench {

using kernels::AttentionPlan;

// Memory in the order of the case's layout, seen as [B,H,T,D]; normal deviates, or zeros without a generator.
View<float, 4> Problem::tensor(const Dims<4>& bhtd, Rng* rng) {
  const size_t count = static_cast<size_t>(element_count(bhtd));
  memory_.push_back(std::make_unique<Workspace>(count * sizeof(float)));
  auto* data = reinterpret_cast<float*>(memory_.back()->data());
  std::generate_n(data, count, [&] { return rng ? rng->normal() : 0.0f; });
  if (case_.layout == Layout::bhtd) return {data, bhtd};
  return View<float, 4>(data, {bhtd[0], bhtd[2], bhtd[1], bhtd[3]}).transposed(1, 2);
}

// The same numbers in 16 bits.
template <class T>
kernels::KvView Problem::narrow(const View<float, 4>& wide) {
  memory_.push_back(std::make_unique<Workspace>(static_cast<size_t>(wide.size()) * sizeof(T)));
  const View<T, 4> to(reinterpret_cast<T*>(memory_.back()->data()), wide.shape());
  std::transform(wide.data(), wide.data() + wide.size(), to.data(), [](float x) { return T::from(x); });
  return to;
}

void Problem::lay_out(Rng& rng) {
  const auto& [B, H, Hk, T, S, D, layout, mask, keys] = case_;
  View<float, 4> dq, dk, dv;
  if (layout == Layout::packed) {  // the heads of q, k and v stand one after the other in each token
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
  memory_.push_back(std::make_unique<Workspace>(static_cast<size_t>(2 * B * H * T) * sizeof(float)));
  const View<float, 4> stats(reinterpret_cast<float*>(memory_.back()->data()), {B, H, T, 2});
  inputs_ = {.q = q_, .k = k_, .v = v_};
  if (keys == DType::bf16) inputs_.k = narrow<BFloat16>(k_), inputs_.v = narrow<BFloat16>(v_);
  if (keys == DType::f16) inputs_.k = narrow<Float16>(k_), inputs_.v = narrow<Float16>(v_);
  outputs_ = {.out = out_, .lse = {}, .stats = stats};
  gradients_ = {.out = out_, .stats = stats, .d_out = d_out_, .dq = dq, .dk = dk, .dv = dv};
}

Problem::Problem(const Case& c, Parallel& parallel) : case_(c), parallel_(parallel), lengths_(key_lengths(c)) {
  Rng rng(1);
  lay_out(rng);
  const kernels::AttentionOptions options{.scale = {}, .mask = mask_of(c, lengths_)};
  visibility_ = kernels::Visibility(options.mask, c.B, c.T, c.S);
  forward_plan_ = AttentionPlan::forward(inputs_, {.out = out_, .lse = {}, .stats = {}}, options);
  stats_plan_ = AttentionPlan::forward(inputs_, outputs_, options);
  backward_plan_ = AttentionPlan::backward(inputs_, gradients_, options);
  for (const AttentionPlan* plan : {&forward_plan_, &stats_plan_, &backward_plan_}) {
    workspace_.reserve(plan->workspace_bytes(parallel.threads()));
  }
  const UnfusedTensors tensors{q_, k_, v_, out_, d_out_, gradients_.dq, gradients_.dk, gradients_.dv};
  unfused_ = std::make_unique<Unfused>(tensors, visibility_, parallel);
}

void Problem::forward() {
  kernels::attention_forward(forward_plan_, inputs_, {.out = out_, .lse = {}, .stats = {}}, workspace_, parallel_);
}

void Problem::forward_with_stats() {
  kernels::attention_forward(stats_plan_, inputs_, outputs_, workspace_, parallel_);
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
