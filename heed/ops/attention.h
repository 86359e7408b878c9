#pragma once
// Attention on the tape, over tensors as projections give them: heads stand side by side in the last dimension.
//
//   q [B,T,Hq D]  k [B,S,Hk D]  v [B,S,Hk Dv]  ->  out [B,T,Hq Dv]
//
// f32 goes to the fused kernel, f64 to its double-precision twin.
#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"

namespace heed::ops {

struct AttentionArguments {
  Var q{}, k{}, v{};
  int64_t heads{1}, kv_heads{1};
  Var bias{};       // [B,Hq,T,S], an extent of 1 serves all; empty: none
  Var head_gate{};  // [Hq]
  Var w{};          // [Hq,D]: the additive score
  kernels::AttentionOptions options{};
};

struct AttentionResult {
  Var out;
  Tensor stats;  // [B,Hq,T,2], for observers; empty in f64
};

// The tensors as the kernel sees them, by heads; empty in f64.
HEED_API kernels::AttentionInputs attention_inputs(const AttentionArguments&);

// Throws Error. What the options borrow has to live until the tape has gone back.
HEED_API AttentionResult attention(const Context&, const AttentionArguments&);

}  // namespace heed::ops
