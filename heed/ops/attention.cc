#include "heed/ops/attention.h"

#include <algorithm>
#include <string>

#include "heed/ops/attention_stats.h"
#include "heed/ops/check.h"
#include "heed/ops/heads.h"
#include "heed/tensor/convert.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

void check_heads(const char* name, const Var& x, int64_t heads) {
  check_there("attention", name, x);
  if (x.shape().rank() != 3) {
    refuse("attention",
           std::string(name) + " has shape " + to_string(x.shape()) + ", expected 3 dimensions: batch, tokens, width");
  }
  if (heads < 1) refuse("attention", std::to_string(heads) + " heads came for " + name + ", expected at least 1");
  if (x.shape(2) % heads != 0) {
    refuse("attention", std::string(name) + " has width " + std::to_string(x.shape(2)) + ", expected a multiple of " +
                            std::to_string(heads) + " heads");
  }
}

// k and v are of q's dtype, or stored in 16 bits where no gradient goes through.
void check_stored(const Context& context, const AttentionArguments& a) {
  const bool stored = is_half(a.k.dtype()) && a.q.dtype() == DType::f32;
  if (!stored) check_dtype("attention", "k", a.k, a.q.dtype());
  check_dtype("attention", "v", a.v, a.k.dtype());
  if (!stored) return;
  const auto inputs = {&a.q, &a.k, &a.v, &a.bias, &a.head_gate, &a.w};
  if (context.tape && std::any_of(inputs.begin(), inputs.end(), [](const Var* x) { return x->tracked(); })) {
    refuse("attention", std::string("k is in ") + name_of(a.k.dtype()) + ", expected " + name_of(a.q.dtype()) +
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
    refuse("attention", "bias has shape " + to_string(a.bias.shape()) + ", expected 4 dimensions");
  }
  if (a.head_gate) check_shape("attention", "head_gate", a.head_gate, {a.heads});
  if (a.w) check_shape("attention", "w", a.w, {a.heads, a.q.shape(2) / a.heads});
}

void go_back(const AttentionArguments& a, const Tensor& out, const Tensor& stats, const Backward& backward) {
  const kernels::AttentionGradients to{.out = by_heads<const float>(out, a.heads),
                                       .stats = stats.view<const float, 4>(),
                                       .d_out = by_heads<const float>(backward.of(0), a.heads),
                                       .dq = by_heads<float>(backward.to(0), a.heads),
                                       .dk = by_heads<float>(backward.to(1), a.kv_heads),
                                       .dv = by_heads<float>(backward.to(2), a.kv_heads),
                                       .d_bias = backward.to(3).view<float, 4>(),
                                       .d_head_gate = backward.to(4).view<float, 1>(),
                                       .dw = backward.to(5).view<float, 2>()};
  kernels::attention_backward(attention_inputs(a), to, a.options, backward.workspace(), backward.parallel());
}

void go_back_in_double(const AttentionArguments& a, const Backward& backward) {
  reference::attention_backward(attention_inputs_f64(a),
                                {.d_out = by_heads<const double>(backward.of(0), a.heads),
                                 .dq = by_heads<double>(backward.to(0), a.heads),
                                 .dk = by_heads<double>(backward.to(1), a.kv_heads),
                                 .dv = by_heads<double>(backward.to(2), a.kv_heads),
                                 .d_bias = backward.to(3).view<double, 4>(),
                                 .d_head_gate = backward.to(4).view<double, 1>(),
                                 .dw = backward.to(5).view<double, 2>()},
                                a.options);
}

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

AttentionResult attention(const Context& context, const AttentionArguments& a) {
  check(context, a);
  const int64_t B = a.q.shape(0), T = a.q.shape(1), Dv = a.v.shape(2) / a.kv_heads;
  const Tensor out = Tensor::uninitialised({B, T, a.heads * Dv}, a.q.dtype());
  const Tensor stats = Tensor::uninitialised({B, a.heads, T, 2}, a.q.dtype());
  const auto inputs = {a.q, a.k, a.v, a.bias, a.head_gate, a.w};
  if (a.q.dtype() == DType::f64) {
    reference::attention_forward(attention_inputs_f64(a), {.out = by_heads<double>(out, a.heads), .lse = lse_of(stats)},
                                 a.options);
    stats_from_lse(stats);
    return {record(context, inputs, out, [a](const Backward& backward) { go_back_in_double(a, backward); }), stats};
  }
  const kernels::AttentionOutputs to{.out = by_heads<float>(out, a.heads), .stats = stats.view<float, 4>()};
  kernels::attention_forward(attention_inputs(a), to, a.options, context.workspace, context.parallel);
  return {record(context, inputs, out, [a, out, stats](const Backward& backward) { go_back(a, out, stats, backward); }),
          stats};
}

}  // namespace heed::ops
