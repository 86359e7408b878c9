// SPDX-License-Identifier: Apache-2.0
#pragma once
// A whole sequence of an RNN, GRU or LSTM in one direction, as one record on the tape. See kernels/recurrent.h.
//
//   x [B,T,I]  ->  h [B,T,H], and the last states [B,H]
#include <span>

#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/recurrent.h"

namespace heed::ops {

// The input, the weights, the first states and the lengths of a recurrence.
struct RecurrentArguments {
  Var x{};
  Var w_ih{}, w_hh{};                  // [G H,I]  [G H,H]
  Var b_ih{}, b_hh{};                  // [G H]; empty: none
  Var peepholes{};                     // [3,H]: of i, f and o of an LSTM; empty: none
  Var h0{}, c0{};                      // [B,H]: the states to begin from; empty: zero
  std::span<const int64_t> lengths{};  // [B], borrowed until the backward pass is done; empty: all of T
  kernels::RecurrentOptions options{};
  bool trace{false};  // the result has the gates and cell states of all tokens
};

// Gates and cell states of all tokens, for observers: constants, zero beyond a row's length.
struct RecurrentTrace {
  Tensor gates{};  // [B,T,G,H], after their activations, in the order of the weights; empty of an RNN
  Tensor c{};      // [B,T,H], of an LSTM
};

// The states of all tokens and the last ones.
struct RecurrentResult {
  Var h;                   // zero beyond a row's length
  Var last_h, last_c;      // those after the last token of the pass over a row; last_c of an LSTM
  RecurrentTrace trace{};  // where the arguments ask for it
};

HEED_API RecurrentResult recurrent(const Context&, const RecurrentArguments&);

}  // namespace heed::ops
