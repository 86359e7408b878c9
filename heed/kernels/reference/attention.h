// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of attention: the formula in double precision, written to be read. It stores T x S weights
// and is slow. Attention over f64 tensors runs here, and every fused kernel is tested against it.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/attention/attention.h"

namespace heed::kernels::reference {

struct Inputs {
  View<const double, 4> q{}, k{}, v{};  // [B,Hq,T,D]  [B,Hk,S,D]  [B,Hk,S,Dv]
  View<const double, 4> bias{};         // [B,Hq,T,S], each extent whole or 1; empty: none
  View<const double, 1> head_gate{};    // [Hq]; empty: all 1
  View<const double, 2> w{};            // [Hq,D]: the additive score; empty: the product
};

struct Outputs {
  View<double, 4> out{};  // [B,Hq,T,Dv]
  View<double, 3> lse{};  // [B,Hq,T], if wanted
  // [B,Hq,T,S], if wanted: the scores of all pairs, scaled; after the softcap; with ALiBi and bias, -inf where masked;
  // and the weights, before dropout and gate, exactly zero where masked.
  View<double, 4> raw{}, capped{}, masked{}, weights{};
};

struct Gradients {
  View<const double, 4> d_out{};     // [B,Hq,T,Dv]
  View<double, 4> dq{}, dk{}, dv{};  // added to; an empty view: not wanted
  View<double, 4> d_bias{};          // of bias's own shape
  View<double, 1> d_head_gate{};     // [Hq]
  View<double, 2> dw{};              // [Hq,D]
};

HEED_API void attention_forward(const Inputs&, const Outputs&, const AttentionOptions& = {});
HEED_API void attention_backward(const Inputs&, const Gradients&, const AttentionOptions& = {});

}  // namespace heed::kernels::reference
