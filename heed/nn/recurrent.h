// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stacked recurrent layers, in one direction or in both, and a convolution along the tokens. Rows may have different
// lengths; states of padding are zero. An observer that wants it is shown states and gates (observer.h).
#include <span>
#include <string>
#include <vector>

#include "heed/base/allocator.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/nn/layers.h"
#include "heed/ops/conv1d.h"
#include "heed/ops/recurrent.h"

namespace heed::nn {

using kernels::Cell;

// The cell, the widths and the number of layers of a stack.
struct RecurrentOptions {
  Cell cell{Cell::lstm};
  int64_t width{256};  // of a layer's states; with two directions, each makes one half
  int64_t layers{1};
  bool bidirectional{false};
  float dropout{0};  // between layers

  static void describe(RecurrentOptions& o, auto&& field) {
    field("cell", o.cell, "rnn, gru or lstm");
    field("width", o.width, "of the states; with two directions, of both together", Range::at_least(1));
    field("layers", o.layers, "stacked layers", Range::at_least(1));
    field("bidirectional", o.bidirectional, "forward and backward, side by side");
    field("dropout", o.dropout, "between layers", Range::from_below(0, 1));
  }
};

// The state of a layer, [B,width] each; c of an LSTM alone.
struct RecurrentStates {
  Var h{}, c{};
};
// One per layer. Made at every pass, so its memory is kept for the next (base/allocator.h).
using LayerStates = CachedVector<RecurrentStates>;

// The lengths, first states and position of one call. Spans are borrowed until the backward pass is done.
struct RecurrentCall {
  std::span<const int64_t> lengths{};        // [B]; empty: all of T
  std::span<const RecurrentStates> begin{};  // the states before the first token, one per layer; empty: zero
  int64_t position{0};                       // of the first token, for observers
};

// Calls the observer, if it wants it, for a recurrence whose arguments had `trace` set. `path` is that of the
// recurrence's parameters. Internal to layers.
HEED_API void report_recurrent(Pass&, const std::string& path, const ops::RecurrentArguments&,
                               const ops::RecurrentResult&, int64_t position);

// One direction of one layer, with PyTorch's names and orders of gates.
struct HEED_API RecurrentDirection {
  std::string path;  // of the parameters, reported to observers: "encoder.layers.0.forward"
  Parameter w_ih, w_hh, b_ih, b_hh;

  RecurrentDirection() = default;
  // Uniform within 1 / sqrt(width); biases are zero, but 1 for an LSTM's forget gate.
  RecurrentDirection(Cell cell, int64_t in, int64_t width, Init init);
  ops::RecurrentArguments arguments(Pass& pass, const Var& x) const {
    return {.x = x, .w_ih = pass.use(w_ih), .w_hh = pass.use(w_hh), .b_ih = pass.use(b_ih), .b_hh = pass.use(b_hh)};
  }
  // `a` is what arguments() gave, with first states and lengths filled in.
  ops::RecurrentResult run(Pass&, ops::RecurrentArguments a, int64_t position) const;
  void visit(auto&& each) { each("w_ih", w_ih), each("w_hh", w_hh), each("b_ih", b_ih), each("b_hh", b_hh); }
};

// One or two directions.
struct RecurrentLayer {
  RecurrentDirection forward, backward;  // backward: empty where there is one direction

  void visit(auto&& each) { each("forward", forward), each("backward", backward); }
};

// The states of all tokens, and the last ones of each layer.
struct RecurrentOutput {
  Var h;             // [B,T,width], of the last layer
  LayerStates last;  // after a row's last token; of the backward direction, after its first
};

// A stack of recurrent layers.
struct HEED_API Recurrent {
  RecurrentOptions options;
  std::vector<RecurrentLayer> layers;

  Recurrent() = default;
  // `path` is that of its parameters: "encoder". Throws Error for options out of range, and for an odd width in two
  // directions.
  Recurrent(int64_t in, const RecurrentOptions&, const std::string& path, Init init);

  // x [B,T,in]
  RecurrentOutput operator()(Pass&, const Var& x, const RecurrentCall& = {}) const;

  void visit(auto&& each) { each("layers", layers); }
};

// A convolution along the tokens with `taps` (kernel size) an odd number: weight [O,taps I], bias [O]. See
// kernels/conv1d.h.
struct HEED_API Conv1d {
  Parameter weight, bias;

  Conv1d() = default;
  Conv1d(int64_t in, int64_t out, int64_t taps, Init init);
  Var operator()(Pass& pass, const Var& x, std::span<const int64_t> lengths = {}) const {
    return ops::conv1d(pass, x, pass.use(weight), pass.use(bias), lengths);
  }
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};

}  // namespace heed::nn
