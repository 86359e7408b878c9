// SPDX-License-Identifier: Apache-2.0
#pragma once
// The attention of a recurrence over its source, one step at a time: q_t = w_query h_{t-1} + b_query, and its context.
// Internal to ops.
#include <algorithm>

#include "heed/kernels/attention/attention.h"
#include "heed/kernels/product.h"
#include "heed/kernels/recurrent.h"
#include "heed/kernels/reference/attention.h"
#include "heed/kernels/reference/linear.h"
#include "heed/ops/attention_stats.h"
#include "heed/ops/attentional_feed.h"
#include "heed/ops/heads.h"

namespace heed::ops {

// The source's keys and values, the weights of queries and scores, and what is kept of a forward pass.
struct Source {
  Tensor keys, values, w_query, b_query, w, head_gate;
  kernels::AttentionOptions options;
  Tensor queries, stats;  // [B,T,A]  [B,1,T,2]

  int64_t width() const { return keys.shape(2); }
};

// Gradients in a backward pass; those not wanted are empty. In a forward pass all are.
struct SourceGradients {
  Tensor queries, contexts;  // [B,T,A]  [B,T,C], room for all tokens
  Tensor keys, values, w, head_gate;

  bool backward() const { return static_cast<bool>(contexts); }
};

// Token t of x [B,T,E], as one query or one result each: [B,1,1,E].
template <class T>
View<T, 4> token_of(const Tensor& x, int64_t t) {
  if (!x) return {};
  const int64_t tokens = x.shape(1), width = x.shape(2);
  return {x.data<std::remove_const_t<T>>() + t * width, {x.shape(0), 1, 1, width}, {tokens * width, width, width, 1}};
}

template <class T>
View<T, 4> token_of(const View<T, 3>& x, int64_t t) {
  const int64_t width = x.shape(2);
  return {x.data() + t * x.stride(1), {x.shape(0), 1, 1, width}, {x.stride(0), width, width, 1}};
}

// Rows [B,E] as [B,1,1,E].
template <class T>
View<T, 4> as_tokens(const View<T, 2>& rows) {
  return {rows.data(), {rows.shape(0), 1, 1, rows.shape(1)}, {rows.stride(0), rows.shape(1), rows.shape(1), 1}};
}

// Token t of [B,T,E] as rows [B,E].
template <class T>
View<T, 2> rows_of(const Tensor& x, int64_t t) {
  return {x.data<std::remove_const_t<T>>() + t * x.shape(2), {x.shape(0), x.shape(2)}, {x.shape(1) * x.shape(2), 1}};
}

// Attention with the state before a token as its query: the feedback of a recurrence, in a forward or a backward pass.
template <class T>
class SourceAttention;

template <>
class SourceAttention<double> final : public kernels::Feedback<double> {
 public:
  SourceAttention(const Source& source, const SourceGradients& to, const View<double, 3>& /*contexts*/, Parallel&)
      : source_(source), to_(to) {}

  void forward(int64_t t, const View<const double, 2>& h, const View<double, 2>& context) noexcept override {
    const View<double, 2> q = rows_of<double>(source_.queries, t);
    if (source_.w_query) {
      kernels::reference::linear_forward(
          {h, source_.w_query.view<const double, 2>(), source_.b_query.view<const double, 1>()}, {.y = q},
          kernels::Activation::none);
    } else {
      for (int64_t b = 0; b < h.shape(0); ++b) std::copy_n(h.at(b), h.shape(1), q.at(b));
    }
    const View<double, 3> lse = lse_of(source_.stats).slice(2, t, 1);
    kernels::reference::attention_forward(inputs(t), {.out = as_tokens(context), .lse = lse}, source_.options);
  }
  void backward(int64_t t, const View<const double, 2>& d_context, const View<double, 2>& dh) noexcept override {
    kernels::reference::attention_backward(inputs(t),
                                           {.d_out = as_tokens(d_context),
                                            .dq = token_of<double>(to_.queries, t),
                                            .dk = by_heads<double>(to_.keys, 1),
                                            .dv = by_heads<double>(to_.values, 1),
                                            .d_head_gate = to_.head_gate.view<double, 1>(),
                                            .dw = to_.w.view<double, 2>()},
                                           source_.options);
    const View<const double, 2> dq = rows_of<const double>(to_.queries, t);
    if (source_.w_query) {
      const View<const double, 2> states = dh;  // only its shape is read
      return kernels::reference::linear_backward({states, source_.w_query.view<const double, 2>(), {}},
                                                 {.dy = dq, .dx = dh}, kernels::Activation::none);
    }
    for (int64_t b = 0; b < dh.shape(0); ++b) {
      for (int64_t j = 0; j < dh.shape(1); ++j) dh(b, j) += dq(b, j);
    }
  }
  // After the last step of a forward pass: statistics as the fused kernel has them.
  void finish() const { stats_from_lse(source_.stats); }

 private:
  kernels::reference::Inputs inputs(int64_t t) const {
    return {.q = token_of<const double>(source_.queries, t),
            .k = by_heads<const double>(source_.keys, 1),
            .v = by_heads<const double>(source_.values, 1),
            .head_gate = source_.head_gate.view<const double, 1>(),
            .w = source_.w.view<const double, 2>()};
  }
  const Source& source_;
  const SourceGradients& to_;
};

template <>
class SourceAttention<float> final : public kernels::Feedback<float> {
 public:
  // Steps have the same shapes and strides, and share one plan. The workspace is its own, as the recurrence uses the
  // context's meanwhile.
  SourceAttention(const Source& source, const SourceGradients& to, const View<float, 3>& contexts, Parallel& parallel)
      : source_(source), to_(to), contexts_(contexts), parallel_(parallel) {
    if (contexts.shape(1) == 0) return;  // no step will come
    plan_ = to.backward()
                ? kernels::AttentionPlan::backward(inputs(0), gradients(0, token_of<const float>(to.contexts, 0)),
                                                   source.options)
                : kernels::AttentionPlan::forward(inputs(0), outputs(0, token_of(contexts, 0)), source.options);
    workspace_ = Workspace::cached(plan_.workspace_bytes(parallel.threads()));
    if (!source.w_query) return;
    const View<const float, 2> w = source.w_query.view<const float, 2>();
    query_ = CachedPanels(to.backward() ? w.transposed(0, 1) : w, parallel);
  }

  void finish() const {}

  void forward(int64_t t, const View<const float, 2>& h, const View<float, 2>& context) noexcept override {
    const View<float, 2> q = rows_of<float>(source_.queries, t);
    if (source_.w_query) {
      kernels::project(h, query_.weight, q, {.b = source_.b_query.view<const float, 1>()}, parallel_);
    } else {
      for (int64_t b = 0; b < h.shape(0); ++b) std::copy_n(h.at(b), h.shape(1), q.at(b));
    }
    kernels::attention_forward(plan_, inputs(t), outputs(t, as_tokens(context)), workspace_, parallel_);
  }
  void backward(int64_t t, const View<const float, 2>& d_context, const View<float, 2>& dh) noexcept override {
    // The plan was made for the strides of a tensor's tokens.
    for (int64_t b = 0; b < d_context.shape(0); ++b) {
      std::copy_n(d_context.at(b), d_context.shape(1), rows_of<float>(to_.contexts, t).at(b));
    }
    kernels::attention_backward(plan_, inputs(t), gradients(t, token_of<const float>(to_.contexts, t)), workspace_,
                                parallel_);
    const View<const float, 2> dq = rows_of<const float>(to_.queries, t);
    if (source_.w_query) return kernels::project(dq, query_.weight, dh, {.add = true}, parallel_);
    for (int64_t b = 0; b < dh.shape(0); ++b) {
      for (int64_t j = 0; j < dh.shape(1); ++j) dh(b, j) += dq(b, j);
    }
  }

 private:
  kernels::AttentionInputs inputs(int64_t t) const {
    return {.q = token_of<const float>(source_.queries, t),
            .k = by_heads<const float>(source_.keys, 1),
            .v = by_heads<const float>(source_.values, 1),
            .head_gate = source_.head_gate.view<const float, 1>(),
            .w = source_.w.view<const float, 2>()};
  }
  // [B,1,T,2] at token t.
  template <class T>
  View<T, 4> stats(int64_t t) const {
    return View<T, 4>(source_.stats.data<float>(), source_.stats.shape().dims<4>()).slice(2, t, 1);
  }
  kernels::AttentionOutputs outputs(int64_t t, const View<float, 4>& context) const {
    return {.out = context, .stats = stats<float>(t)};
  }
  kernels::AttentionGradients gradients(int64_t t, const View<const float, 4>& d_context) const {
    return {.out = token_of(contexts_, t),
            .stats = stats<const float>(t),
            .d_out = d_context,
            .dq = token_of<float>(to_.queries, t),
            .dk = by_heads<float>(to_.keys, 1),
            .dv = by_heads<float>(to_.values, 1),
            .d_head_gate = to_.head_gate.view<float, 1>(),
            .dw = to_.w.view<float, 2>()};
  }

  const Source& source_;
  const SourceGradients& to_;
  const View<float, 3> contexts_;
  Parallel& parallel_;
  kernels::AttentionPlan plan_;
  Workspace workspace_;
  CachedPanels query_;
};

}  // namespace heed::ops
