#pragma once
// The specification of attention: the formula in double precision, written to be read. It stores T x S weights and
// takes its time. Tensors of f64 are served by it, and every fused kernel is tested against it.
#include "heed/base/view.h"
#include "heed/kernels/attention/attention.h"

namespace heed::kernels::reference {

struct Inputs {
  View<const double, 4> q{}, k{}, v{};  // [B,Hq,T,D]  [B,Hk,S,D]  [B,Hk,S,Dv]
};

struct Outputs {
  View<double, 4> out{};      // [B,Hq,T,Dv]
  View<double, 3> lse{};      // [B,Hq,T], if wanted
  View<double, 4> weights{};  // [B,Hq,T,S], if wanted: exactly zero where masked
};

struct Gradients {
  View<const double, 4> d_out{};     // [B,Hq,T,Dv]
  View<double, 4> dq{}, dk{}, dv{};  // added to; an empty view: not wanted
};

void attention_forward(const Inputs&, const Outputs&, const AttentionOptions& = {});
void attention_backward(const Inputs&, const Gradients&, const AttentionOptions& = {});

}  // namespace heed::kernels::reference
