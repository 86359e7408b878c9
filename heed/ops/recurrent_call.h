// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ops over recurrences share: the check of their arguments, their inputs by name, and the calls of the kernels and
// their f64 twins. Internal to ops.
#include "heed/kernels/reference/recurrent.h"
#include "heed/ops/check.h"
#include "heed/ops/dispatch.h"
#include "heed/ops/inputs.h"
#include "heed/ops/recurrent.h"

namespace heed::ops {

// The first inputs of every record of a recurrence.
inline constexpr InputList kRecurrentInputs(
    std::to_array<NamedInput<RecurrentArguments>>({{"x", &RecurrentArguments::x},
                                                   {"w_ih", &RecurrentArguments::w_ih},
                                                   {"w_hh", &RecurrentArguments::w_hh},
                                                   {"b_ih", &RecurrentArguments::b_ih},
                                                   {"b_hh", &RecurrentArguments::b_hh},
                                                   {"peepholes", &RecurrentArguments::peepholes},
                                                   {"h0", &RecurrentArguments::h0},
                                                   {"c0", &RecurrentArguments::c0}}));

inline size_t recurrent_forward_scratch(const kernels::RecurrentInputs<float>& in,
                                        const kernels::RecurrentOutputs<float>&,
                                        const kernels::RecurrentOptions& options) {
  return kernels::recurrent_forward_bytes(in, options);
}
inline size_t recurrent_backward_scratch(const kernels::RecurrentInputs<float>& in,
                                         const kernels::RecurrentGradients<float>&,
                                         const kernels::RecurrentOptions& options) {
  return kernels::recurrent_backward_bytes(in, options);
}
inline void recurrent_trace_f32(const kernels::RecurrentInputs<float>& in, const kernels::RecurrentOutputs<float>& out,
                                const kernels::RecurrentOptions& options, const kernels::RecurrentTrace<float>& trace,
                                Workspace& workspace, Parallel&) {
  workspace.reserve(kernels::recurrent_forward_bytes(in, options));
  kernels::recurrent_trace(in, out, options, trace, workspace);
}

inline constexpr Kernel kRecurrentForward{kernels::recurrent_forward, kernels::reference::recurrent_forward,
                                          recurrent_forward_scratch};
inline constexpr Kernel kRecurrentBackward{kernels::recurrent_backward, kernels::reference::recurrent_backward,
                                           recurrent_backward_scratch};
inline constexpr Kernel kRecurrentTrace{recurrent_trace_f32, kernels::reference::recurrent_trace};

// The tensors that a recurrence reads, those that it writes, and what backward needs of them.
struct RecurrentCall {
  Tensor x, w_ih, w_hh, b_ih, b_hh, peepholes, h0, c0;
  std::span<const int64_t> lengths;
  kernels::RecurrentOptions options;
  Tensor h, last_h, last_c, context, saved;

  // `contexts` is C, the width of what feedback adds; 0: none.
  RecurrentCall(const RecurrentArguments& a, int64_t contexts)
      : x(a.x.value()),
        w_ih(a.w_ih.value()),
        w_hh(a.w_hh.value()),
        b_ih(a.b_ih.value()),
        b_hh(a.b_hh.value()),
        peepholes(a.peepholes.value()),
        h0(a.h0.value()),
        c0(a.c0.value()),
        lengths(a.lengths),
        options(a.options) {
    const int64_t B = x.shape(0), T = x.shape(1), H = w_hh.shape(1);
    const auto make = [&](const Shape& shape) { return Tensor::uninitialised(shape, x.dtype()); };
    h = make({B, T, H});
    last_h = make({B, H});
    if (options.cell == kernels::Cell::lstm) last_c = make({B, H});
    if (contexts > 0) context = make({B, T, contexts});
    saved = make({B * T, kernels::saved_width(options.cell, H)});
  }

  template <class T>
  kernels::RecurrentInputs<T> inputs(kernels::Feedback<T>* feedback) const {
    return {.x = x.view<const T, 3>(),
            .w_ih = w_ih.view<const T, 2>(),
            .w_hh = w_hh.view<const T, 2>(),
            .b_ih = b_ih.view<const T, 1>(),
            .b_hh = b_hh.view<const T, 1>(),
            .peepholes = peepholes.view<const T, 2>(),
            .h0 = h0.view<const T, 2>(),
            .c0 = c0.view<const T, 2>(),
            .lengths = lengths,
            .feedback = feedback};
  }
  template <class T>
  kernels::RecurrentOutputs<T> outputs() const {
    return {.h = h.view<T, 3>(),
            .last_h = last_h.view<T, 2>(),
            .last_c = last_c.view<T, 2>(),
            .context = context.view<T, 3>(),
            .saved = saved.view<T, 2>()};
  }
  // d_h, d_context and those of the last states are left to the caller.
  template <class T>
  kernels::RecurrentGradients<T> gradients(const Backward& backward) const {
    using Arguments = RecurrentArguments;
    return {.saved = saved.view<const T, 2>(),
            .context = context.view<const T, 3>(),
            .dx = backward.to(kRecurrentInputs[&Arguments::x]).view<T, 3>(),
            .dw_ih = backward.to(kRecurrentInputs[&Arguments::w_ih]).view<T, 2>(),
            .dw_hh = backward.to(kRecurrentInputs[&Arguments::w_hh]).view<T, 2>(),
            .db_ih = backward.to(kRecurrentInputs[&Arguments::b_ih]).view<T, 1>(),
            .db_hh = backward.to(kRecurrentInputs[&Arguments::b_hh]).view<T, 1>(),
            .d_peepholes = backward.to(kRecurrentInputs[&Arguments::peepholes]).view<T, 2>(),
            .dh0 = backward.to(kRecurrentInputs[&Arguments::h0]).view<T, 2>(),
            .dc0 = backward.to(kRecurrentInputs[&Arguments::c0]).view<T, 2>()};
  }

  template <class T>
  void forward(const Context& on, kernels::Feedback<T>* feedback) const {
    kRecurrentForward(on, inputs<T>(feedback), outputs<T>(), options);
  }
  template <class T>
  void backward(const Backward& on, const kernels::RecurrentGradients<T>& grad, kernels::Feedback<T>* feedback) const {
    kRecurrentBackward(on, inputs<T>(feedback), grad, options);
  }
  // After forward.
  RecurrentTrace trace(const Context& on) const {
    const int64_t B = h.shape(0), T = h.shape(1), H = h.shape(2), G = kernels::gates_of(options.cell);
    RecurrentTrace to;
    if (options.cell != kernels::Cell::rnn) to.gates = Tensor::uninitialised({B, T, G, H}, h.dtype());
    if (options.cell == kernels::Cell::lstm) to.c = Tensor::like(h);
    with_float("recurrent", h.dtype(), [&]<class Number>(Number) {
      const kernels::RecurrentTrace<Number> views{to.gates.view<Number, 4>(), to.c.view<Number, 3>()};
      kRecurrentTrace(on, inputs<Number>(nullptr), outputs<Number>(), options, views);
    });
    return to;
  }
};

inline void check_recurrent(const char* op, const RecurrentArguments& a, int64_t contexts) {
  check_sequences(op, "x", a.x, a.lengths);
  check_there(op, "w_hh", a.w_hh);
  const int64_t G = kernels::gates_of(a.options.cell), H = a.w_hh.shape(-1), B = a.x.shape(0);
  if (H < 1) fail(op, "w_hh has shape " + to_string(a.w_hh.shape()) + ", expected states of 1 or more");
  check_shape(op, "w_hh", a.w_hh, {G * H, H});
  check_shape(op, "w_ih", a.w_ih, {G * H, a.x.shape(2) + contexts});
  const bool lstm = a.options.cell == kernels::Cell::lstm;
  if (a.peepholes && !lstm) fail(op, "peepholes came, expected them for an LSTM alone");
  if (a.c0 && !lstm) fail(op, "c0 came, expected it for an LSTM alone");
  if (a.b_ih) check_shape(op, "b_ih", a.b_ih, {G * H});
  if (a.b_hh) check_shape(op, "b_hh", a.b_hh, {G * H});
  if (a.peepholes) check_shape(op, "peepholes", a.peepholes, {3, H});
  if (a.h0) check_shape(op, "h0", a.h0, {B, H});
  if (a.c0) check_shape(op, "c0", a.c0, {B, H});
  kRecurrentInputs.check_dtypes(op, a, a.x.dtype());
}

}  // namespace heed::ops
