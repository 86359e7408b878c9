#pragma once
// Recurrent layers, one over the other, in one direction or in both, and a convolution along the tokens. Rows may have
// different lengths; states beyond are zero. An observer that wants it is told what the cells did (observer.h).
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

struct RecurrentOptions {
  Cell cell{Cell::lstm};
  int64_t width{256};  // of a layer's states; with two directions, each makes one half
  int64_t layers{1};
  bool bidirectional{false};
  float dropout{0};  // between layers

  static void describe(RecurrentOptions& o, auto&& field) {
    field("cell", o.cell, "rnn, gru or lstm");
    field("width", o.width, "of the states; with two directions, of both together", Range::at_least(1));
    field("layers", o.layers, "one over the other", Range::at_least(1));
    field("bidirectional", o.bidirectional, "forward and backward, side by side");
    field("dropout", o.dropout, "between layers", Range::from_below(0, 1));
  }
};

// [B,width] each; c of an LSTM alone.
struct RecurrentStates {
  Var h{}, c{};
};
// One a layer; made at every pass, so in memory that is kept for the next.
using LayerStates = CachedVector<RecurrentStates>;

// What a call is about, beside the input. Spans are borrowed until the tape has gone back.
struct RecurrentCall {
  std::span<const int64_t> lengths{};        // [B]; empty: all of T
  std::span<const RecurrentStates> begin{};  // the states before the first token, one a layer; empty: zero
  int64_t position{0};                       // of the first token, for observers
};

// Tells the observer, if it wants it, of a recurrence whose arguments had `trace` set. `path` is that of the
// recurrence's parameters. Internal to layers.
HEED_API void tell_recurrent(Pass&, const std::string& path, const ops::RecurrentArguments&,
                             const ops::RecurrentResult&, int64_t position);

// One direction of one layer, with PyTorch's names and orders of gates.
struct HEED_API RecurrentDirection {
  std::string path;  // of the parameters, told to observers: "encoder.layers.0.forward"
  Parameter w_ih, w_hh, b_ih, b_hh;

  RecurrentDirection() = default;
  // Uniform within 1 / sqrt(width); biases are zero, but for an LSTM's forget gate, which begins open.
  RecurrentDirection(Cell cell, int64_t in, int64_t width, Init init);
  ops::RecurrentArguments arguments(Pass& pass, const Var& x) const {
    return {.x = x, .w_ih = pass.use(w_ih), .w_hh = pass.use(w_hh), .b_ih = pass.use(b_ih), .b_hh = pass.use(b_hh)};
  }
  // Of arguments that began as those above.
  ops::RecurrentResult run(Pass&, ops::RecurrentArguments, int64_t position) const;
  void visit(auto&& each) { each("w_ih", w_ih), each("w_hh", w_hh), each("b_ih", b_ih), each("b_hh", b_hh); }
};

struct RecurrentLayer {
  RecurrentDirection forward, backward;  // backward: empty where there is one direction

  void visit(auto&& each) { each("forward", forward), each("backward", backward); }
};

struct RecurrentOutput {
  Var h;             // [B,T,width], of the last layer
  LayerStates last;  // after a row's last token; backward, after its first
};

struct HEED_API Recurrent {
  RecurrentOptions options;
  std::vector<RecurrentLayer> layers;

  Recurrent() = default;
  // `path` is that of its parameters: "encoder". Throws Error where options do not fit.
  Recurrent(int64_t in, const RecurrentOptions&, const std::string& path, Init init);

  // x [B,T,in]
  RecurrentOutput operator()(Pass&, const Var& x, const RecurrentCall& = {}) const;

  void visit(auto&& each) { each("layers", layers); }
};

// weight [O,taps I], bias [O]: see kernels/conv1d.h.
struct HEED_API Conv1d {
  Parameter weight, bias;

  Conv1d() = default;
  Conv1d(int64_t in, int64_t out, int64_t taps, Init init);  // taps: an odd number
  Var operator()(Pass& pass, const Var& x, std::span<const int64_t> lengths = {}) const {
    return ops::conv1d(pass, x, pass.use(weight), pass.use(bias), lengths);
  }
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};

}  // namespace heed::nn
