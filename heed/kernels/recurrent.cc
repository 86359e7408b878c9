// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/recurrent.h"

#include <cassert>

#include "heed/kernels/linear.h"
#include "heed/kernels/product.h"
#include "heed/kernels/recurrent_cells.h"
#include "heed/kernels/recurrent_steps.h"

namespace heed::kernels {

namespace {

// Scratch of a call.
struct Scratch {
  Steps steps;
  float *x, *c;                        // [tokens,I]  [B,H]
  float *q, *h;                        // [B,q_stride]  [B,H]: of the current step, contiguous
  std::byte* input;                    // packed w_ih
  std::byte *hidden, *last, *context;  // packed w_hh (of a GRU r and z, and then n), and w_ih's columns of the context

  Scratch(const RecurrentInputs<float>& in, const RecurrentOptions& options, Arena& arena)
      : steps(in, options.reverse, arena) {
    const RecurrentSizes n(in, options);
    const bool split = options.cell == Cell::gru;
    x = arena.take<float>(n.B * n.T * n.I);
    c = arena.take<float>(n.B * n.H);
    q = arena.take<float>(n.B * n.q_stride());
    h = arena.take<float>(n.B * n.H);
    input = arena.take<std::byte>(step_weight_bytes(n.G * n.H, n.I, n.packs_input()));
    hidden = arena.take<std::byte>(step_weight_bytes(split ? 2 * n.H : n.G * n.H, n.H, n.packs()));
    last = arena.take<std::byte>(split ? step_weight_bytes(n.H, n.H, n.packs()) : 0);
    context = arena.take<std::byte>(step_weight_bytes(n.G * n.H, n.C, n.packs()));
  }
};

// One call: its arguments, and what its steps work on.
struct Forward {
  const RecurrentInputs<float>& in;
  const RecurrentOutputs<float>& out;
  const RecurrentOptions& options;
  const RecurrentSizes& n;
  const Scratch& scratch;
  Parallel& parallel;
  Weight input{}, hidden{}, last{}, context{};

  void run_products(int64_t s, int64_t begin, const SavedColumns<float>& saved) const;
  void run_cells(int64_t s, int64_t begin, const SavedColumns<float>& saved) const;
  void run_input(int64_t begin, int64_t end) const;
  void run_rows(int64_t begin, int64_t end, int64_t ready) const;
  void begin_rows() const;
};

// For the rows of step s from `begin` on: adds the context's part to p, and computes q.
void Forward::run_products(int64_t s, int64_t begin, const SavedColumns<float>& saved) const {
  const int64_t count = saved.gates.shape(0), rows = hidden.outputs();
  const View<float, 2> q(scratch.q + begin * n.q_stride(), {count, n.G * n.H}, {n.q_stride(), 1});
  const View<const float, 2> h(scratch.h + begin * n.H, {count, n.H});
  if (in.feedback) {
    const View<float, 2> added(out.context.at(0, s), {n.B, n.C}, {out.context.stride(0), 1});
    in.feedback->forward(s, h, added);
    project(added, context, saved.gates, {.add = true}, parallel);
  }
  project(h, hidden, q.slice(1, 0, rows), {.b = some_of(in.b_hh, 0, rows)}, parallel);
  if (options.cell != Cell::gru) return;
  const View<float, 2> q_n = q.slice(1, rows, n.H);
  const View<const float, 1> b_n = some_of(in.b_hh, rows, n.H);
  if (!options.reset_before) project(h, last, q_n, {.b = b_n}, parallel);
  for (int64_t i = 0; i < count; ++i) {
    gru_reset(saved.gates.at(i), q.at(i), h.at(i), options.reset_before ? saved.extra.at(i) : nullptr, n.H);
    if (!options.reset_before) copy_row(q_n.at(i), saved.extra.at(i), n.H);
  }
  if (options.reset_before) project(saved.extra, last, q_n, {.b = b_n}, parallel);
}

void Forward::run_cells(int64_t s, int64_t begin, const SavedColumns<float>& saved) const {
  for (int64_t i = 0; i < saved.gates.shape(0); ++i) {
    const int64_t r = begin + i, b = scratch.steps.row(r);
    float *gates = saved.gates.at(i), *h = out.h.at(b, scratch.steps.position(r, s));
    const float* q = scratch.q + r * n.q_stride();
    const bool goes_on = r < scratch.steps.running(s + 1);
    float* next = goes_on ? out.saved.at(scratch.steps.first(s + 1) + r) + n.G * n.H : nullptr;
    switch (options.cell) {
      case Cell::rnn:
        rnn_cell(gates, q, h, n.H);
        break;
      case Cell::gru:
        gru_cell({gates, q + 2 * n.H, saved.before.at(i), options.reset_before}, h, n.H);
        break;
      case Cell::lstm:
        float* c = goes_on ? next + n.H : out.last_c ? out.last_c.at(b) : scratch.c + r * n.H;
        lstm_cell({gates, saved.extra.at(i), in.peepholes.data()}, q, c, h, n.H);
        break;
    }
    if (goes_on) {
      copy_row(h, next, n.H);
      copy_row(h, scratch.h + r * n.H, n.H);
    } else if (out.last_h) {
      copy_row(h, out.last_h.at(b), n.H);
    }
  }
}

// p of tokens [begin, end).
void Forward::run_input(int64_t begin, int64_t end) const {
  linear_forward({{scratch.x + begin * n.I, {end - begin, n.I}}, input, in.b_ih},
                 {.y = out.saved.slice(0, begin, end - begin).slice(1, 0, n.G * n.H)}, Activation::none, parallel);
}

// All steps of rows [begin, end). `ready` tokens have their p. The others get it a few steps at a time, so that it is
// still in the cache when the step comes; without packed weights, all in one product.
void Forward::run_rows(int64_t begin, int64_t end, int64_t ready) const {
  constexpr int64_t kTokens = 96;  // tokens: a tile of project()
  const Steps& steps = scratch.steps;
  for (int64_t s = 0; begin < std::min(end, steps.running(s)); ++s) {
    if (ready < steps.first(s + 1)) {
      const int64_t count = input.packed() ? std::max(kTokens, steps.running(s)) : steps.tokens();
      const int64_t next = std::min(steps.tokens(), ready + count);
      run_input(ready, next);
      ready = next;
    }
    const int64_t count = std::min(end, steps.running(s)) - begin;
    const SavedColumns<float> saved(out.saved.slice(0, steps.first(s) + begin, count), n);
    run_products(s, begin, saved);
    run_cells(s, begin, saved);
  }
}

void copy_or_clear(const View<const float, 2>& from, int64_t b, float* to, int64_t count) {
  if (from) return copy_row(from.at(b), to, count);
  std::fill_n(to, count, 0.0f);
}

// The states before the first step, the last states of rows without tokens, and zeros at padding.
void Forward::begin_rows() const {
  for (int64_t r = 0; r < n.B; ++r) {
    const int64_t b = scratch.steps.row(r), length = scratch.steps.length(r);
    for (int64_t t = length; t < n.T; ++t) std::fill_n(out.h.at(b, t), n.H, 0.0f);
    if (length > 0) {
      float* before = out.saved.at(r) + n.G * n.H;
      copy_or_clear(in.h0, b, before, n.H);
      copy_row(before, scratch.h + r * n.H, n.H);
      if (options.cell == Cell::lstm) copy_or_clear(in.c0, b, before + n.H, n.H);
    } else {
      if (out.last_h) copy_or_clear(in.h0, b, out.last_h.at(b), n.H);
      if (out.last_c) copy_or_clear(in.c0, b, out.last_c.at(b), n.H);
    }
  }
}

}  // namespace

size_t recurrent_forward_bytes(const RecurrentInputs<float>& in, const RecurrentOptions& options) {
  Arena arena(nullptr);
  const Scratch scratch(in, options, arena);
  return arena.bytes();
}

void recurrent_forward(const RecurrentInputs<float>& in, const RecurrentOutputs<float>& out,
                       const RecurrentOptions& options, Workspace& workspace, Parallel& parallel) noexcept {
  assert(workspace.bytes() >= recurrent_forward_bytes(in, options));
  assert(!in.feedback || (in.lengths.empty() && !options.reverse));
  const RecurrentSizes n(in, options);
  Arena arena(workspace.data());
  Scratch scratch(in, options, arena);
  scratch.steps.sort();
  const int64_t tokens = scratch.steps.tokens(), rows = options.cell == Cell::gru ? 2 * n.H : n.G * n.H;
  Forward call{.in = in, .out = out, .options = options, .n = n, .scratch = scratch, .parallel = parallel};
  call.input = step_weight(in.w_ih.slice(1, 0, n.I), n.packs_input(), scratch.input, parallel);
  call.hidden = step_weight(in.w_hh.slice(0, 0, rows), n.packs(), scratch.hidden, parallel);
  if (options.cell == Cell::gru) {
    call.last = step_weight(in.w_hh.slice(0, rows, n.H), n.packs(), scratch.last, parallel);
  }
  if (in.feedback) call.context = step_weight(in.w_ih.slice(1, n.I, n.C), n.packs(), scratch.context, parallel);
  call.begin_rows();
  scratch.steps.for_each(parallel, [&](int64_t r, int64_t s, int64_t token) {
    copy_row(in.x.at(scratch.steps.row(r), scratch.steps.position(r, s)), scratch.x + token * n.I, n.I);
  });
  const int64_t runs = count_runs(n, in.feedback != nullptr, parallel);
  if (runs > 1) call.run_input(0, tokens);
  for_runs(scratch.steps, runs, parallel,
           [&](int64_t begin, int64_t end) { call.run_rows(begin, end, runs > 1 ? tokens : 0); });
}

void recurrent_trace(const RecurrentInputs<float>& in, const RecurrentOutputs<float>& out,
                     const RecurrentOptions& options, const RecurrentTrace<float>& to, Workspace& workspace) noexcept {
  assert(workspace.bytes() >= recurrent_forward_bytes(in, options));
  assert(!to.c || out.last_c);
  const RecurrentSizes n(in, options);
  Arena arena(workspace.data());
  Steps steps(in, options.reverse, arena);
  steps.sort();
  for (int64_t r = 0; r < n.B; ++r) {
    const int64_t b = steps.row(r), length = steps.length(r);
    for (int64_t t = length; t < n.T; ++t) {
      if (to.gates) std::fill_n(to.gates.at(b, t), n.G * n.H, 0.0f);
      if (to.c) std::fill_n(to.c.at(b, t), n.H, 0.0f);
    }
    for (int64_t s = 0; s < length; ++s) {
      const int64_t t = steps.position(r, s);
      if (to.gates) copy_row(out.saved.at(steps.first(s) + r), to.gates.at(b, t), n.G * n.H);
      if (!to.c) continue;
      // The next token has saved it as its c'.
      const float* c = s + 1 < length ? out.saved.at(steps.first(s + 1) + r) + (n.G + 1) * n.H : out.last_c.at(b);
      copy_row(c, to.c.at(b, t), n.H);
    }
  }
}

}  // namespace heed::kernels
