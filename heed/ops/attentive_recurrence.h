// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recurrence with attention over a source before each step, as in Bahdanau's decoder: the state before a token is the
// query, and its context is fed to the cell beside the token. The whole sequence is one record on the tape: keys come
// projected, and the gradient of each weight is one large product over all tokens.
//
//   c_t = sum_s softmax_s(f(q_t, k_s)) v_s,   q_t = w_query h_{t-1} + b_query,   h_t = cell([x_t ; c_t], h_{t-1})
//
// With w_feed it is Luong's input feeding: tanh(w_feed [h_{t-1} ; c_t] + b_feed) is fed to the cell in place of c_t.
#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"
#include "heed/ops/recurrent.h"

namespace heed::ops {

// A recurrence, the source that it attends to, and the weights of both.
struct AttentiveRecurrenceArguments {
  RecurrentArguments recurrence{};        // w_ih is [G H,I + C], or [G H,I + F]; forward, without lengths
  Var keys{}, values{};                   // [B,S,A]  [B,S,C]
  Var w_query{}, b_query{};               // [A,H]  [A]; empty: the state is the query, A = H
  Var w{};                                // [1,A]: the additive score w . tanh(q + k); empty: the product q . k
  Var w_feed{}, b_feed{};                 // [F,H + C]  [F]; empty: contexts are fed as they are
  Var head_gate{};                        // [1]
  kernels::AttentionOptions attention{};  // without dropout; what it borrows lives until the backward pass is done
};

// States, what was fed to the cell, and what observers read.
struct AttentiveRecurrenceResult {
  Var h, fed;              // [B,T,H]  [B,T,C], or [B,T,F]: what was fed to the cell beside x
  Var last_h, last_c;      // [B,H]; last_c of an LSTM
  Tensor queries, stats;   // [B,T,A]  [B,1,T,2], for observers: see AttentionResult
  RecurrentTrace trace{};  // where the recurrence's arguments ask for it
};

HEED_API AttentiveRecurrenceResult attentive_recurrence(const Context&, const AttentiveRecurrenceArguments&);

}  // namespace heed::ops
