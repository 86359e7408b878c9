// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/attention.h"

#include <string>

#include "heed/ops/attention_stats.h"
#include "heed/ops/dispatch.h"
#include "heed/ops/heads.h"
#include "heed/ops/inputs.h"
#include "heed/tensor/convert.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;
using Arguments = AttentionArguments;

constexpr InputList kInputs(std::to_array<NamedInput<Arguments>>({{"q", &Arguments::q},
                                                                  {"k", &Arguments::k},
                                                                  {"v", &Arguments::v},
                                                                  {"bias", &Arguments::bias},
                                                                  {"head_gate", &Arguments::head_gate},
                                                                  {"w", &Arguments::w}}));

void check_heads(const char* name, const Var& x, int64_t heads) {
  check_there("attention", name, x);
  if (x.shape().rank() != 3) {
    fail("attention",
         std::string(name) + " has shape " + to_string(x.shape()) + ", expected 3 dimensions: batch, tokens, width");
  }
  if (heads < 1) fail("attention", std::to_string(heads) + " heads came for " + name + ", expected at least 1");
  if (x.shape(2) % heads != 0) {
    fail("attention", std::string(name) + " has width " + std::to_string(x.shape(2)) + ", expected a multiple of " +
                          std::to_string(heads) + " heads");
  }
}

// k and v are of q's dtype, or stored in 16 bits where no gradient is wanted.
void check_stored(const Context& context, const AttentionArguments& a) {
  const bool stored = is_half(a.k.dtype()) && a.q.dtype() == DType::f32;
  if (!stored) check_dtype("attention", "k", a.k, a.q.dtype());
  check_dtype("attention", "v", a.v, a.k.dtype());
  if (!stored) return;
  if (wants_record(context, kInputs.of(a))) {
    fail("attention", std::string("k is in ") + name_of(a.k.dtype()) + ", expected " + name_of(a.q.dtype()) +
                          ": there are no gradients through keys and values in 16 bits");
  }
}

void check(const Context& context, const AttentionArguments& a) {
  check_numbers("attention", "q", a.q);
  check_heads("q", a.q, a.heads);
  check_heads("k", a.k, a.kv_heads);
  check_heads("v", a.v, a.kv_heads);
  check_stored(context, a);
  const std::pair<const char*, const Var*> others[] = {{"bias", &a.bias}, {"head_gate", &a.head_gate}, {"w", &a.w}};
  for (const auto& [name, x] : others) check_dtype("attention", name, *x, a.q.dtype());
  if (a.bias && a.bias.shape().rank() != 4) {
    fail("attention", "bias has shape " + to_string(a.bias.shape()) + ", expected 4 dimensions");
  }
  if (a.head_gate) check_shape("attention", "head_gate", a.head_gate, {a.heads});
  if (a.w) check_shape("attention", "w", a.w, {a.heads, a.q.shape(2) / a.heads});
}

void forward_f32(const AttentionArguments& a, const Tensor& out, const Tensor& stats, Workspace& workspace,
                 Parallel& parallel) {
  kernels::attention_forward(attention_inputs(a),
                             {.out = by_heads<float>(out, a.heads), .stats = stats.view<float, 4>()}, a.options,
                             workspace, parallel);
}

void forward_f64(const AttentionArguments& a, const Tensor& out, const Tensor& stats) {
  reference::attention_forward(attention_inputs_f64(a), {.out = by_heads<double>(out, a.heads), .lse = lse_of(stats)},
                               a.options);
  stats_from_lse(stats);
}

// Of the kernel or of its twin; `out` and `stats` are left to the caller.
template <class T, class Gradients>
Gradients gradients_of(const AttentionArguments& a, const Backward& backward) {
  Gradients to;
  to.d_out = by_heads<const T>(backward.of(0), a.heads);
  to.dq = by_heads<T>(backward.to(kInputs[&Arguments::q]), a.heads);
  to.dk = by_heads<T>(backward.to(kInputs[&Arguments::k]), a.kv_heads);
  to.dv = by_heads<T>(backward.to(kInputs[&Arguments::v]), a.kv_heads);
  to.d_bias = backward.to(kInputs[&Arguments::bias]).template view<T, 4>();
  to.d_head_gate = backward.to(kInputs[&Arguments::head_gate]).template view<T, 1>();
  to.dw = backward.to(kInputs[&Arguments::w]).template view<T, 2>();
  return to;
}

void backward_f32(const AttentionArguments& a, const Tensor& out, const Tensor& stats, const Backward& backward) {
  auto to = gradients_of<float, kernels::AttentionGradients>(a, backward);
  to.out = by_heads<const float>(out, a.heads);
  to.stats = stats.view<const float, 4>();
  kernels::attention_backward(attention_inputs(a), to, a.options, backward.workspace(), backward.parallel());
}

// The twin computes the statistics of rows again.
void backward_f64(const AttentionArguments& a, const Tensor& /*out*/, const Tensor& /*stats*/,
                  const Backward& backward) {
  const auto to = gradients_of<double, reference::Gradients>(a, backward);
  reference::attention_backward(attention_inputs_f64(a), to, a.options);
}

constexpr Kernel kForward{forward_f32, forward_f64};
constexpr Kernel kBackward{backward_f32, backward_f64};

}  // namespace

kernels::AttentionInputs attention_inputs(const AttentionArguments& a) {
  if (a.q.dtype() != DType::f32) return {};
  return {.q = by_heads<const float>(a.q.value(), a.heads),
          .k = keys_by_heads(a.k.value(), a.kv_heads),
          .v = keys_by_heads(a.v.value(), a.kv_heads),
          .bias = a.bias.value().view<const float, 4>(),
          .head_gate = a.head_gate.value().view<const float, 1>(),
          .w = a.w.value().view<const float, 2>()};
}

kernels::reference::Inputs attention_inputs_f64(const AttentionArguments& a) {
  if (a.q.dtype() != DType::f64) return {};
  return {.q = by_heads<const double>(a.q.value(), a.heads),
          .k = by_heads<const double>(a.k.value(), a.kv_heads),
          .v = by_heads<const double>(a.v.value(), a.kv_heads),
          .bias = a.bias.value().view<const double, 4>(),
          .head_gate = a.head_gate.value().view<const double, 1>(),
          .w = a.w.value().view<const double, 2>()};
}

Tensor attention(const Context& context, const CachedAttentionArguments& a) {
  check_heads("q", a.q, a.heads);
  check_dtype("attention", "q", a.q, DType::f32);
  const Tensor out = Tensor::uninitialised({a.q.shape(0), a.q.shape(1), a.heads * a.v.shape(3)});
  const kernels::AttentionInputs inputs{
      .q = by_heads<const float>(a.q, a.heads), .k = a.k, .v = a.v, .w = a.w.view<const float, 2>()};
  kernels::attention_forward(inputs, {.out = by_heads<float>(out, a.heads), .lse = {}, .stats = {}}, a.options,
                             context.workspace, context.parallel);
  return out;
}

AttentionResult attention(const Context& context, const AttentionArguments& a) {
  check(context, a);
  const int64_t B = a.q.shape(0), T = a.q.shape(1), Dv = a.v.shape(2) / a.kv_heads;
  const Tensor out = Tensor::uninitialised({B, T, a.heads * Dv}, a.q.dtype());
  const Tensor stats = Tensor::uninitialised({B, a.heads, T, 2}, a.q.dtype());
  kForward(context, a, out, stats);
  const Var result = record(context, kInputs.of(a), out,
                            [a, out, stats](const Backward& backward) { kBackward(backward, a, out, stats); });
  return {result, stats};
}

}  // namespace heed::ops
