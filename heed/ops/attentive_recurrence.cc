// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/attentive_recurrence.h"

#include <algorithm>
#include <cstring>

#include "heed/kernels/linear.h"
#include "heed/kernels/reference/linear.h"
#include "heed/ops/attentional_feed.h"
#include "heed/ops/recurrent_call.h"
#include "heed/ops/source_attention.h"

namespace heed::ops {
namespace {

using Arguments = AttentiveRecurrenceArguments;

// They follow those of the recurrence.
constexpr InputList kSourceInputs(std::to_array<NamedInput<Arguments>>({{"w_query", &Arguments::w_query},
                                                                        {"b_query", &Arguments::b_query},
                                                                        {"keys", &Arguments::keys},
                                                                        {"values", &Arguments::values},
                                                                        {"w", &Arguments::w},
                                                                        {"head_gate", &Arguments::head_gate},
                                                                        {"w_feed", &Arguments::w_feed},
                                                                        {"b_feed", &Arguments::b_feed}}),
                                  kRecurrentInputs.end());

// The record's outputs by name.
struct Output {
  enum : uint8_t { h, fed, last_h, last_c };
};

// Where contexts [B,T,C] are kept: as what is fed, or beside the states in the input of w_feed.
template <class T>
View<T, 3> contexts_of(const RecurrentCall& call, const FeedCall& feed) {
  return feed.w ? feed.contexts<T>() : call.context.view<T, 3>();
}

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

// The gradients of a projection's weights over all tokens: dw += dy^T x, db += sum dy. One product for the sequence.
void weights_backward_f32(const View<const float, 2>& x, const View<const float, 2>& w, const View<const float, 2>& dy,
                          const View<float, 2>& dw, const View<float, 1>& db, Workspace& workspace,
                          Parallel& parallel) {
  workspace.reserve(kernels::linear_backward_bytes(dy.shape(0), dy.shape(1), kernels::Activation::none));
  kernels::linear_backward({x, w, {}}, {.dy = dy, .dw = dw, .db = db}, kernels::Activation::none, workspace, parallel);
}
void weights_backward_f64(const View<const double, 2>& x, const View<const double, 2>& w,
                          const View<const double, 2>& dy, const View<double, 2>& dw, const View<double, 1>& db) {
  kernels::reference::linear_backward({x, w, {}}, {.dy = dy, .dw = dw, .db = db}, kernels::Activation::none);
}
constexpr Kernel kWeightsBackward{weights_backward_f32, weights_backward_f64};

template <class T>
kernels::RecurrentGradients<T> gradients_of(const RecurrentCall& call, const Backward& backward) {
  kernels::RecurrentGradients<T> grad = call.gradients<T>(backward);
  grad.d_h = backward.of(Output::h).template view<const T, 3>();
  grad.d_context = backward.of(Output::fed).template view<const T, 3>();
  grad.d_last_h = backward.of(Output::last_h).template view<const T, 2>();
  if (call.last_c) grad.d_last_c = backward.of(Output::last_c).template view<const T, 2>();
  return grad;
}

void run_backward(const RecurrentCall& call, const Source& source, const FeedCall& feed, const Backward& backward) {
  const int64_t B = call.h.shape(0), T = call.h.shape(1);
  const auto room = [&](const Shape& shape) { return Tensor::uninitialised(shape, call.h.dtype()); };
  const SourceGradients to{.queries = Tensor::zeros_like(source.queries),
                           .contexts = room({B, T, source.values.shape(2)}),
                           .keys = backward.to(kSourceInputs[&Arguments::keys]),
                           .values = backward.to(kSourceInputs[&Arguments::values]),
                           .w = backward.to(kSourceInputs[&Arguments::w]),
                           .head_gate = backward.to(kSourceInputs[&Arguments::head_gate])};
  FeedGradients to_feed;
  if (feed.w) to_feed = {Tensor::like(call.context), room({B, feed.pairs.shape(2)})};
  with_float("attentive recurrence", call.x.dtype(), [&]<class Number>(Number) {
    SourceAttention<Number> attention(source, to, contexts_of<Number>(call, feed), backward.parallel());
    AttentionalFeed<Number> feeding(feed, to_feed, attention, backward.parallel());
    call.backward<Number>(backward, gradients_of<Number>(call, backward), feeding.feedback());
  });
  const Tensor dw_query = backward.to(kSourceInputs[&Arguments::w_query]),
               db_query = backward.to(kSourceInputs[&Arguments::b_query]);
  if (dw_query || db_query) {
    kWeightsBackward(backward, states_before(call), source.w_query, to.queries, dw_query, db_query);
  }
  const Tensor dw_feed = backward.to(kSourceInputs[&Arguments::w_feed]),
               db_feed = backward.to(kSourceInputs[&Arguments::b_feed]);
  if (dw_feed || db_feed) kWeightsBackward(backward, feed.pairs, feed.w, to_feed.sums, dw_feed, db_feed);
}

// The width of what is fed to the cell beside x.
int64_t fed_width(const char* op, const AttentiveRecurrenceArguments& a) {
  if (!a.w_feed && a.b_feed) fail(op, "b_feed came without w_feed, expected both or none");
  if (!a.w_feed) return a.values.shape(2);
  check_rows(op, "w_feed", a.w_feed);
  if (a.w_feed.shape(0) < 1) {
    fail(op, "w_feed has shape " + to_string(a.w_feed.shape()) + ", expected 1 row or more");
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
  kSourceInputs.check_dtypes(op, a, a.recurrence.x.dtype());
  if (a.recurrence.options.reverse || !a.recurrence.lengths.empty()) {
    fail(op, "a recurrence with lengths, or in reverse, came, expected one forward over all tokens");
  }
  if (a.attention.dropout.on()) fail(op, "attention with dropout came, expected none");
}

}  // namespace

AttentiveRecurrenceResult attentive_recurrence(const Context& context, const AttentiveRecurrenceArguments& a) {
  check(a);
  const RecurrentArguments& r = a.recurrence;
  const int64_t B = r.x.shape(0), T = r.x.shape(1), H = r.w_hh.shape(1), C = a.values.shape(2);
  const RecurrentCall call(r, a.w_feed ? a.w_feed.shape(0) : C);
  FeedCall feed{a.w_feed.value(), a.b_feed.value(), call.context, {}, H};
  if (feed.w) feed.pairs = Tensor::uninitialised({B, T, H + C}, r.x.dtype());
  const Source source{.keys = a.keys.value(),
                      .values = a.values.value(),
                      .w_query = a.w_query.value(),
                      .b_query = a.b_query.value(),
                      .w = a.w.value(),
                      .head_gate = a.head_gate.value(),
                      .options = a.attention,
                      .queries = Tensor::uninitialised({B, T, a.keys.shape(2)}, r.x.dtype()),
                      .stats = Tensor::uninitialised({B, 1, T, 2}, r.x.dtype())};
  const SourceGradients none;
  const FeedGradients none_fed;
  with_float("attentive recurrence", r.x.dtype(), [&]<class Number>(Number) {
    SourceAttention<Number> attention(source, none, contexts_of<Number>(call, feed), context.parallel);
    AttentionalFeed<Number> feeding(feed, none_fed, attention, context.parallel);
    call.forward<Number>(context, feeding.feedback());
    attention.finish();
  });
  AttentiveRecurrenceResult result{call.h, call.context, call.last_h, call.last_c, source.queries, source.stats};
  if (r.trace) result.trace = call.trace(context);
  const auto inputs = joined(kRecurrentInputs.of(r), kSourceInputs.of(a));
  const auto back = [call, source, feed](const Backward& backward) { run_backward(call, source, feed, backward); };
  if (call.last_c) {
    const auto vars = record<4>(context, inputs, {call.h, call.context, call.last_h, call.last_c}, back);
    result.h = vars[Output::h], result.fed = vars[Output::fed], result.last_h = vars[Output::last_h];
    result.last_c = vars[Output::last_c];
  } else {
    const auto vars = record<3>(context, inputs, {call.h, call.context, call.last_h}, back);
    result.h = vars[Output::h], result.fed = vars[Output::fed], result.last_h = vars[Output::last_h];
  }
  return result;
}

}  // namespace heed::ops
