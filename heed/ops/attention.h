// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention on the tape, over tensors as projections give them: heads side by side in the last dimension.
//
//   q [B,T,Hq D]  k [B,S,Hk D]  v [B,S,Hk Dv]  ->  out [B,T,Hq Dv]
//
// f32 goes to the fused kernel, f64 to its double-precision twin. Without gradients, k and v may be stored in 16 bits
// beside a q in f32, as caches have them.
#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/reference/attention.h"

namespace heed::ops {

// Inputs that may have gradients, how they divide into heads, and options.
struct AttentionArguments {
  Var q{}, k{}, v{};
  int64_t heads{1}, kv_heads{1};
  Var bias{};       // [B,Hq,T,S], an extent of 1 is broadcast; empty: none
  Var head_gate{};  // [Hq]
  Var w{};          // [Hq,D]: the additive score
  kernels::AttentionOptions options{};
};

// The output, and the softmax statistics of its rows.
struct AttentionResult {
  Var out;
  // [B,Hq,T,2], for observers: weight = 2^(score * log2(e) - stats[0]) / stats[1]. In f64, stats[1] is 1, and both are
  // 0 where a row sees nothing.
  Tensor stats;
};

// The tensors as the kernel sees them, by heads; empty in f64.
HEED_API kernels::AttentionInputs attention_inputs(const AttentionArguments&);
// As its twin sees them; empty in f32.
HEED_API kernels::reference::Inputs attention_inputs_f64(const AttentionArguments&);

// Throws Error. What the options borrow has to live until the backward pass is done.
HEED_API AttentionResult attention(const Context&, const AttentionArguments&);

// For inference, over keys and values where a cache has them, by heads and maybe in pages; q [B,T,Hq D] in f32.
struct CachedAttentionArguments {
  Tensor q{};
  kernels::KvView k{}, v{};  // [B,Hk,S,D], [B,Hk,S,Dv] in f32, bf16 or f16
  int64_t heads{1};
  Tensor w{};  // [Hq,D]: the additive score
  kernels::AttentionOptions options{};
};
// -> [B,T,Hq Dv]. Throws Error.
HEED_API Tensor attention(const Context&, const CachedAttentionArguments&);

}  // namespace heed::ops
