#include "heed/ops/attentive_recurrence.h"

#include <algorithm>
#include <cstring>

#include "heed/kernels/linear.h"
#include "heed/kernels/product.h"
#include "heed/kernels/reference/attention.h"
#include "heed/kernels/reference/linear.h"
#include "heed/ops/attention_stats.h"
#include "heed/ops/attentional_feed.h"
#include "heed/ops/heads.h"
#include "heed/ops/recurrent_call.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

// What is looked at, and what is kept of it.
struct Source {
  Tensor keys, values, w_query, b_query, w, head_gate;
  kernels::AttentionOptions options;
  Tensor queries, stats;

  int64_t width() const { return keys.shape(2); }
  bool in_double() const { return keys.dtype() == DType::f64; }
};

// Gradients, on the way back; those not wanted are empty.
struct SourceGradients {
  Tensor queries, context, keys, values, w, head_gate;  // context: room for it, in f32
};

// Contexts [B,T,C], where they are kept: fed as they are, or beside the states that they were made of.
template <class T>
View<T, 3> contexts_of(const RecurrentCall& call, const FeedCall& feed) {
  return feed.w ? feed.contexts<T>() : call.context.view<T, 3>();
}

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

// Attention with the state before a token as its query.
template <class T>
class Looking;

template <>
class Looking<double> final : public kernels::Feedback<double> {
 public:
  Looking(const Source& source, const SourceGradients& to) : source_(source), to_(to) {}

  void forward(int64_t t, const View<const double, 2>& h, const View<double, 2>& context) noexcept override {
    const View<double, 2> q = rows_of<double>(source_.queries, t);
    if (source_.w_query) {
      reference::linear_forward({h, source_.w_query.view<const double, 2>(), source_.b_query.view<const double, 1>()},
                                {.y = q}, kernels::Activation::none);
    } else {
      for (int64_t b = 0; b < h.shape(0); ++b) std::copy_n(h.at(b), h.shape(1), q.at(b));
    }
    const View<double, 3> lse = lse_of(source_.stats).slice(2, t, 1);
    reference::attention_forward(inputs(t), {.out = as_tokens(context), .lse = lse}, source_.options);
  }
  void backward(int64_t t, const View<const double, 2>& d_context, const View<double, 2>& dh) noexcept override {
    reference::attention_backward(inputs(t),
                                  {.d_out = as_tokens(d_context),
                                   .dq = token_of<double>(to_.queries, t),
                                   .dk = by_heads<double>(to_.keys, 1),
                                   .dv = by_heads<double>(to_.values, 1),
                                   .d_head_gate = to_.head_gate.view<double, 1>(),
                                   .dw = to_.w.view<double, 2>()},
                                  source_.options);
    const View<const double, 2> dq = rows_of<const double>(to_.queries, t);
    if (source_.w_query) {
      const View<const double, 2> states = dh;  // x counts by its shape alone
      return reference::linear_backward({states, source_.w_query.view<const double, 2>(), {}}, {.dy = dq, .dx = dh},
                                        kernels::Activation::none);
    }
    for (int64_t b = 0; b < dh.shape(0); ++b) {
      for (int64_t j = 0; j < dh.shape(1); ++j) dh(b, j) += dq(b, j);
    }
  }

 private:
  reference::Inputs inputs(int64_t t) const {
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
class Looking<float> final : public kernels::Feedback<float> {
 public:
  // Steps have the same shapes and strides: one plan serves all. Scratch is its own, as the recurrence has the
  // context's.
  Looking(const Source& source, const SourceGradients& to, const View<float, 3>& contexts, bool back,
          Parallel& parallel)
      : source_(source), to_(to), contexts_(contexts), parallel_(parallel) {
    if (contexts.shape(1) == 0) return;  // no step will come
    plan_ = back ? kernels::AttentionPlan::backward(inputs(0), gradients(0, token_of<const float>(to.context, 0)),
                                                    source.options)
                 : kernels::AttentionPlan::forward(inputs(0), outputs(0, token_of(contexts, 0)), source.options);
    workspace_ = Workspace::cached(plan_.workspace_bytes(parallel.threads()));
    if (!source.w_query) return;
    const View<const float, 2> w = source.w_query.view<const float, 2>();
    query_ = CachedPanels(back ? w.transposed(0, 1) : w, parallel);
  }

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
      std::copy_n(d_context.at(b), d_context.shape(1), rows_of<float>(to_.context, t).at(b));
    }
    kernels::attention_backward(plan_, inputs(t), gradients(t, token_of<const float>(to_.context, t)), workspace_,
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

// The states before each token, [B T,H]: h0, and then h but for its last.
Tensor states_before(const RecurrentCall& call) {
  const int64_t B = call.h.shape(0), T = call.h.shape(1);
  Tensor before = Tensor::zeros_like(call.h);
  const size_t row = call.h.bytes() / static_cast<size_t>(std::max<int64_t>(1, B * T));
  for (int64_t b = 0; b < B && T > 0; ++b) {
    std::byte* to = before.raw() + static_cast<size_t>(b * T) * row;
    if (call.h0) std::memcpy(to, call.h0.raw() + static_cast<size_t>(b) * row, row);
    std::memcpy(to + row, call.h.raw() + static_cast<size_t>(b * T) * row, static_cast<size_t>(T - 1) * row);
  }
  return before;
}

// A projection of all tokens, y = x w^T + b: the gradients of its weights are one product. They are inputs i and i + 1.
void weights_back(const Tensor& x, const Tensor& w, const Tensor& dy, size_t i, const Backward& backward) {
  if (x.dtype() == DType::f64) {
    return reference::linear_backward({x.view<const double, 2>(), w.view<const double, 2>(), {}},
                                      {.dy = dy.view<const double, 2>(),
                                       .dw = backward.to(i).view<double, 2>(),
                                       .db = backward.to(i + 1).view<double, 1>()},
                                      kernels::Activation::none);
  }
  const View<const float, 2> rows = dy.view<const float, 2>();
  backward.workspace().reserve(kernels::linear_backward_bytes(rows.shape(0), rows.shape(1), kernels::Activation::none));
  kernels::linear_backward(
      {x.view<const float, 2>(), w.view<const float, 2>(), {}},
      {.dy = rows, .dw = backward.to(i).view<float, 2>(), .db = backward.to(i + 1).view<float, 1>()},
      kernels::Activation::none, backward.workspace(), backward.parallel());
}

template <class T>
kernels::RecurrentGradients<T> gradients_of(const RecurrentCall& call, const Backward& backward) {
  kernels::RecurrentGradients<T> grad = call.gradients<T>(backward);
  grad.d_h = backward.of(0).template view<const T, 3>();
  grad.d_context = backward.of(1).template view<const T, 3>();
  grad.d_last_h = backward.of(2).template view<const T, 2>();
  if (call.last_c) grad.d_last_c = backward.of(3).template view<const T, 2>();
  return grad;
}

// The record's inputs from 8 on are w_query, b_query, keys, values, w, head_gate, w_feed and b_feed.
void go_back(const RecurrentCall& call, const Source& source, const FeedCall& feed, const Backward& backward) {
  const int64_t B = call.h.shape(0), T = call.h.shape(1);
  const auto room = [&](const Shape& shape) { return Tensor::uninitialised(shape, call.h.dtype()); };
  const SourceGradients to{Tensor::zeros_like(source.queries),
                           room({B, T, source.values.shape(2)}),
                           backward.to(10),
                           backward.to(11),
                           backward.to(12),
                           backward.to(13)};
  FeedGradients to_feed;
  if (feed.w) to_feed = {Tensor::like(call.context), room({B, feed.pairs.shape(2)})};
  if (source.in_double()) {
    Looking<double> looking(source, to);
    AttentionalFeed<double> feeding(feed, to_feed, looking, backward.parallel());
    call.backward(gradients_of<double>(call, backward), feeding.feedback());
  } else {
    Looking<float> looking(source, to, contexts_of<float>(call, feed), true, backward.parallel());
    AttentionalFeed<float> feeding(feed, to_feed, looking, backward.parallel());
    call.backward(gradients_of<float>(call, backward), feeding.feedback(), backward.workspace(), backward.parallel());
  }
  if (backward.wants(8) || backward.wants(9)) {
    weights_back(states_before(call), source.w_query, to.queries, 8, backward);
  }
  if (backward.wants(14) || backward.wants(15)) weights_back(feed.pairs, feed.w, to_feed.sums, 14, backward);
}

// How wide what goes into the cell beside x is.
int64_t fed_width(const char* op, const AttentiveRecurrenceArguments& a) {
  if (!a.w_feed && a.b_feed) refuse(op, "b_feed came without w_feed, expected both or none");
  if (!a.w_feed) return a.values.shape(2);
  check_rows(op, "w_feed", a.w_feed);
  if (a.w_feed.shape(0) < 1) {
    refuse(op, "w_feed has shape " + to_string(a.w_feed.shape()) + ", expected 1 row or more");
  }
  return a.w_feed.shape(0);
}

void check(const AttentiveRecurrenceArguments& a) {
  constexpr const char* op = "attentive recurrence";
  check_sequences(op, "values", a.values, {});
  check_sequences(op, "keys", a.keys, {});
  const int64_t F = fed_width(op, a), C = a.values.shape(2);
  check_recurrent(op, a.recurrence, F);
  const int64_t B = a.recurrence.x.shape(0), H = a.recurrence.w_hh.shape(1), A = a.keys.shape(2);
  check_shape(op, "keys", a.keys, {B, a.values.shape(1), A});
  check_shape(op, "values", a.values, {B, a.keys.shape(1), C});
  if (a.w_query) check_shape(op, "w_query", a.w_query, {A, H});
  if (!a.w_query && A != H) check_shape(op, "keys", a.keys, {B, a.keys.shape(1), H});
  if (a.b_query) check_shape(op, "b_query", a.b_query, {A});
  if (a.w) check_shape(op, "w", a.w, {1, A});
  if (a.w_feed) check_shape(op, "w_feed", a.w_feed, {F, H + C});
  if (a.b_feed) check_shape(op, "b_feed", a.b_feed, {F});
  if (a.head_gate) check_shape(op, "head_gate", a.head_gate, {1});
  const std::pair<const char*, const Var*> all[] = {
      {"keys", &a.keys}, {"values", &a.values}, {"w_query", &a.w_query}, {"b_query", &a.b_query},
      {"w", &a.w},       {"w_feed", &a.w_feed}, {"b_feed", &a.b_feed},   {"head_gate", &a.head_gate}};
  for (const auto& [name, x] : all) check_dtype(op, name, *x, a.recurrence.x.dtype());
  if (a.recurrence.options.reverse || !a.recurrence.lengths.empty()) {
    refuse(op, "a recurrence with lengths, or in reverse, came, expected one forward over all tokens");
  }
  if (a.attention.dropout.on()) refuse(op, "attention with dropout came, expected none");
}

}  // namespace

AttentiveRecurrenceResult attentive_recurrence(const Context& context, const AttentiveRecurrenceArguments& a) {
  check(a);
  const RecurrentArguments& r = a.recurrence;
  const int64_t B = r.x.shape(0), T = r.x.shape(1), H = r.w_hh.shape(1), C = a.values.shape(2);
  const RecurrentCall call(r, a.w_feed ? a.w_feed.shape(0) : C);
  FeedCall feed{a.w_feed.value(), a.b_feed.value(), call.context, {}, H};
  if (feed.w) feed.pairs = Tensor::uninitialised({B, T, H + C}, r.x.dtype());
  Source source{a.keys.value(),
                a.values.value(),
                a.w_query.value(),
                a.b_query.value(),
                a.w.value(),
                a.head_gate.value(),
                a.attention,
                {},
                {}};
  source.queries = Tensor::uninitialised({B, T, source.width()}, r.x.dtype());
  source.stats = Tensor::uninitialised({B, 1, T, 2}, r.x.dtype());
  const SourceGradients none;
  const FeedGradients none_fed;
  if (source.in_double()) {
    Looking<double> looking(source, none);
    AttentionalFeed<double> feeding(feed, none_fed, looking, context.parallel);
    call.forward(feeding.feedback());
    stats_from_lse(source.stats);
  } else {
    Looking<float> looking(source, none, contexts_of<float>(call, feed), false, context.parallel);
    AttentionalFeed<float> feeding(feed, none_fed, looking, context.parallel);
    call.forward(feeding.feedback(), context.workspace, context.parallel);
  }
  const std::array<Var, 16> inputs{r.x,       r.w_ih,    r.w_hh, r.b_ih,   r.b_hh, r.peepholes, r.h0,     r.c0,
                                   a.w_query, a.b_query, a.keys, a.values, a.w,    a.head_gate, a.w_feed, a.b_feed};
  const bool tracked = std::any_of(inputs.begin(), inputs.end(), [](const Var& x) { return x.tracked(); });
  AttentiveRecurrenceResult result{call.h, call.context, call.last_h, call.last_c, source.queries, source.stats};
  if (r.trace) result.trace = call.trace(context.workspace);
  if (!context.tape || !tracked) return result;
  const auto back = [call, source, feed](const Backward& backward) { go_back(call, source, feed, backward); };
  if (call.last_c) {
    const auto vars = context.tape->record<4>(inputs, {call.h, call.context, call.last_h, call.last_c}, back);
    result.h = vars[0], result.fed = vars[1], result.last_h = vars[2], result.last_c = vars[3];
  } else {
    const auto vars = context.tape->record<3>(inputs, {call.h, call.context, call.last_h}, back);
    result.h = vars[0], result.fed = vars[1], result.last_h = vars[2];
  }
  return result;
}

}  // namespace heed::ops
