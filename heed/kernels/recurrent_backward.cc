// SPDX-License-Identifier: Apache-2.0
// Backward through a recurrence: step by step the gradients of the gates' sums p and q, which end up as one matrix; the
// gradients of weights and inputs are products of it.
#include <cassert>

#include "heed/kernels/linear.h"
#include "heed/kernels/product.h"
#include "heed/kernels/recurrent.h"
#include "heed/kernels/recurrent_cells.h"
#include "heed/kernels/recurrent_steps.h"

namespace heed::kernels {

namespace {

// Columns of the gradients of a token's sums: of the gates; of q_n for a GRU that resets after the product; and
// padding, see saved_width.
int64_t sum_columns(const RecurrentOptions& options, const RecurrentSizes& n) {
  return (options.cell == Cell::gru && !options.reset_before ? n.G + 1 : n.G) * n.H + 16;
}

// Scratch of a call.
struct Scratch {
  std::byte* linear;  // the scratch of linear_backward, which takes the beginning of the workspace
  Steps steps;
  float *x, *dx;                               // [tokens,I + C]  [tokens,I]
  float* sums;                                 // [tokens,sum_columns]
  float *dh, *dc, *d_reset;                    // [B,H]: passed on to the step before
  float* d_context;                            // [B,C]
  std::byte *input, *hidden, *last, *context;  // the transposed weights, packed

  Scratch(const RecurrentInputs<float>& in, const RecurrentOptions& options, Arena& arena)
      : linear(arena.take<std::byte>(static_cast<int64_t>(
            linear_backward_bytes(in.x.shape(0) * in.x.shape(1), in.w_hh.shape(0), Activation::none)))),
        steps(in, options.reverse, arena) {
    const RecurrentSizes n(in, options);
    const bool split = options.cell == Cell::gru;
    x = arena.take<float>(n.B * n.T * (n.I + n.C));
    dx = arena.take<float>(n.B * n.T * n.I);
    sums = arena.take<float>(n.B * n.T * sum_columns(options, n));
    dh = arena.take<float>(n.B * n.H);
    dc = arena.take<float>(n.B * n.H);
    d_reset = arena.take<float>(n.B * n.H);
    d_context = arena.take<float>(n.B * n.C);
    input = arena.take<std::byte>(step_weight_bytes(n.I, n.G * n.H, n.packs_input()));
    hidden = arena.take<std::byte>(step_weight_bytes(n.H, split ? 2 * n.H : n.G * n.H, n.packs()));
    last = arena.take<std::byte>(split ? step_weight_bytes(n.H, n.H, n.packs()) : 0);
    context = arena.take<std::byte>(step_weight_bytes(n.C, n.G * n.H, n.packs()));
  }
};

// One call: its arguments, and what its steps work on.
struct Backward {
  const RecurrentInputs<float>& in;
  const RecurrentGradients<float>& grad;
  const RecurrentOptions& options;
  const RecurrentSizes& n;
  const Scratch& scratch;
  Weight hidden, last, context;
  Parallel& parallel;

  void run_cells(int64_t s, int64_t begin, const SavedColumns<const float>& saved, const View<float, 2>& sums) const;
  void run_products(int64_t s, int64_t begin, const SavedColumns<const float>& saved, const View<float, 2>& sums) const;
  void run_rows(int64_t begin, int64_t end) const;
  void gather_inputs() const;
  void add_peepholes(const SavedColumns<const float>& saved, const View<const float, 2>& sums) const;
  void add_weight_gradients(Workspace& workspace) const;
  void begin_rows() const;
};

void Backward::run_cells(int64_t s, int64_t begin, const SavedColumns<const float>& saved,
                         const View<float, 2>& sums) const {
  for (int64_t i = 0; i < sums.shape(0); ++i) {
    const int64_t r = begin + i;
    float* dh = scratch.dh + r * n.H;
    const float* gates = saved.gates.at(i);
    if (grad.d_h) add_row_to(dh, grad.d_h.at(scratch.steps.row(r), scratch.steps.position(r, s)), n.H);
    switch (options.cell) {
      case Cell::rnn:
        rnn_cell_backward(gates, dh, sums.at(i), n.H);
        break;
      case Cell::gru:
        gru_cell_backward({gates, saved.before.at(i), dh, sums.at(i)},
                          options.reset_before ? nullptr : saved.extra.at(i), n.H);
        break;
      case Cell::lstm:
        lstm_cell_backward({gates, saved.extra.at(i), in.peepholes.data()}, dh, scratch.dc + r * n.H, sums.at(i), n.H);
        break;
    }
  }
}

// dh of the states before: from the gradients of the sums and of the context; the cells have left the part that
// bypasses the gates.
void Backward::run_products(int64_t s, int64_t begin, const SavedColumns<const float>& saved,
                            const View<float, 2>& sums) const {
  const int64_t rows = sums.shape(0);
  const View<float, 2> dh(scratch.dh + begin * n.H, {rows, n.H});
  if (options.cell == Cell::gru && options.reset_before) {
    const View<float, 2> d_reset(scratch.d_reset + begin * n.H, {rows, n.H});
    project(sums.slice(1, 2 * n.H, n.H), last, d_reset, {}, parallel);
    for (int64_t i = 0; i < rows; ++i) {
      gru_reset_backward({saved.gates.at(i), saved.before.at(i), dh.at(i), sums.at(i)}, d_reset.at(i), n.H);
    }
  }
  project(sums.slice(1, 0, hidden.inputs()), hidden, dh, {.add = options.cell == Cell::gru}, parallel);
  if (options.cell == Cell::gru && !options.reset_before) {
    project(sums.slice(1, 3 * n.H, n.H), last, dh, {.add = true}, parallel);
  }
  if (!in.feedback) return;
  const View<float, 2> d_context(scratch.d_context, {n.B, n.C});
  project(sums.slice(1, 0, n.G * n.H), context, d_context, {}, parallel);
  for (int64_t b = 0; grad.d_context && b < n.B; ++b) add_row_to(d_context.at(b), grad.d_context.at(b, s), n.C);
  in.feedback->backward(s, d_context, dh);
}

void Backward::run_rows(int64_t begin, int64_t end) const {
  const Steps& steps = scratch.steps;
  const View<float, 2> all(scratch.sums, {steps.tokens(), sum_columns(options, n)});
  for (int64_t s = n.T - 1; s >= 0; --s) {
    const int64_t count = std::min(end, steps.running(s)) - begin;
    if (count <= 0) continue;
    const SavedColumns<const float> saved(grad.saved.slice(0, steps.first(s) + begin, count), n);
    const View<float, 2> sums = all.slice(0, steps.first(s) + begin, count);
    run_cells(s, begin, saved, sums);
    run_products(s, begin, saved, sums);
  }
}

void Backward::gather_inputs() const {
  scratch.steps.for_each(parallel, [&](int64_t r, int64_t s, int64_t token) {
    const int64_t b = scratch.steps.row(r), t = scratch.steps.position(r, s);
    float* to = scratch.x + token * (n.I + n.C);
    copy_row(in.x.at(b, t), to, n.I);
    if (n.C) copy_row(grad.context.at(b, t), to + n.I, n.C);
  });
}

// In the order of the tokens, so that the sums do not depend on threads.
void Backward::add_peepholes(const SavedColumns<const float>& saved, const View<const float, 2>& sums) const {
  const int64_t H = n.H;
  const View<float, 2>& to = grad.d_peepholes;
  for (int64_t token = 0; token < sums.shape(0); ++token) {
    const float *d = sums.at(token), *gates = saved.gates.at(token), *before = saved.extra.at(token);
    for (int64_t j = 0; j < H; ++j) {
      const float c = gates[H + j] * before[j] + gates[j] * gates[2 * H + j];
      to(0, j) += d[j] * before[j];
      to(1, j) += d[H + j] * before[j];
      to(2, j) += d[3 * H + j] * c;
    }
  }
}

void Backward::add_weight_gradients(Workspace& workspace) const {
  const int64_t tokens = scratch.steps.tokens();
  const View<const float, 2> sums(scratch.sums, {tokens, sum_columns(options, n)});
  const SavedColumns<const float> saved(grad.saved.slice(0, 0, tokens), n);
  const auto add = [&](const View<const float, 2>& x, int64_t column, const View<float, 2>& dw,
                       const View<float, 1>& db, int64_t row, int64_t rows) {
    if (!dw && !db) return;
    linear_backward({x, View<const float, 2>(), {}},
                    {.dy = sums.slice(1, column, rows), .dw = some_of(dw, row, rows), .db = some_of(db, row, rows)},
                    Activation::none, workspace, parallel);
  };
  if (grad.dw_ih) gather_inputs();
  add({scratch.x, {tokens, n.I + n.C}}, 0, grad.dw_ih, grad.db_ih, 0, n.G * n.H);
  if (options.cell == Cell::gru) {
    add(saved.before, 0, grad.dw_hh, grad.db_hh, 0, 2 * n.H);
    add(options.reset_before ? saved.extra : saved.before, options.reset_before ? 2 * n.H : 3 * n.H, grad.dw_hh,
        grad.db_hh, 2 * n.H, n.H);
  } else {
    add(saved.before, 0, grad.dw_hh, grad.db_hh, 0, n.G * n.H);
  }
  if (grad.d_peepholes) add_peepholes(saved, sums);
  if (!grad.dx) return;
  const Weight input = step_weight(in.w_ih.slice(1, 0, n.I).transposed(0, 1), n.packs_input(), scratch.input, parallel);
  project(sums.slice(1, 0, n.G * n.H), input, {scratch.dx, {tokens, n.I}}, {}, parallel);
  scratch.steps.for_each(parallel, [&](int64_t r, int64_t s, int64_t token) {
    add_row_to(grad.dx.at(scratch.steps.row(r), scratch.steps.position(r, s)), scratch.dx + token * n.I, n.I);
  });
}

void Backward::begin_rows() const {
  for (int64_t r = 0; r < n.B; ++r) {
    std::fill_n(scratch.dh + r * n.H, n.H, 0.0f);
    std::fill_n(scratch.dc + r * n.H, n.H, 0.0f);
    if (grad.d_last_h) copy_row(grad.d_last_h.at(scratch.steps.row(r)), scratch.dh + r * n.H, n.H);
    if (grad.d_last_c) copy_row(grad.d_last_c.at(scratch.steps.row(r)), scratch.dc + r * n.H, n.H);
  }
}

}  // namespace

size_t recurrent_backward_bytes(const RecurrentInputs<float>& in, const RecurrentOptions& options) {
  Arena arena(nullptr);
  const Scratch scratch(in, options, arena);
  return arena.bytes();
}

void recurrent_backward(const RecurrentInputs<float>& in, const RecurrentGradients<float>& grad,
                        const RecurrentOptions& options, Workspace& workspace, Parallel& parallel) noexcept {
  assert(workspace.bytes() >= recurrent_backward_bytes(in, options));
  const RecurrentSizes n(in, options);
  Arena arena(workspace.data());
  Scratch scratch(in, options, arena);
  scratch.steps.sort();
  const int64_t rows = options.cell == Cell::gru ? 2 * n.H : n.G * n.H;
  const auto transposed = [&](const View<const float, 2>& w, std::byte* to) {
    return step_weight(w.transposed(0, 1), n.packs(), to, parallel);
  };
  Backward call{in, grad, options, n, scratch, transposed(in.w_hh.slice(0, 0, rows), scratch.hidden), {}, {}, parallel};
  if (options.cell == Cell::gru) call.last = transposed(in.w_hh.slice(0, rows, n.H), scratch.last);
  if (in.feedback) call.context = transposed(in.w_ih.slice(1, n.I, n.C), scratch.context);
  call.begin_rows();
  for_runs(scratch.steps, count_runs(n, in.feedback != nullptr, parallel), parallel,
           [&](int64_t begin, int64_t end) { call.run_rows(begin, end); });
  call.add_weight_gradients(workspace);
  for (int64_t r = 0; r < n.B; ++r) {
    if (grad.dh0) add_row_to(grad.dh0.at(scratch.steps.row(r)), scratch.dh + r * n.H, n.H);
    if (grad.dc0) add_row_to(grad.dc0.at(scratch.steps.row(r)), scratch.dc + r * n.H, n.H);
  }
}

}  // namespace heed::kernels
