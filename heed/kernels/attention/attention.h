// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scaled dot-product and additive attention, fused and exact, in memory linear in T and S:
//
//   out = gate * dropout(softmax(softcap(scale * f(q, k)) + alibi + bias, masked)) v
//
//   q [B,Hq,T,D]  k [B,Hk,S,D]  v [B,Hk,S,Dv]  ->  out [B,Hq,T,Dv],   Hq a multiple of Hk
//
// The score f(q, k) is the dot product q . k, or the additive score sum_a w_a tanh(q_a + k_a) where w is given.
// Not here: projections (nn/attention.h), the specification in double precision (kernels/reference/attention.h),
// rows and maps of attention weights (observe.h).
//
// Views may have any strides with a contiguous last dimension: [B,T,H,D] and packed QKV need no copy. k and v may be
// stored in 16 bits; everything else is f32. A row whose keys are all masked is zero, with zero gradients. Values at
// masked positions, NaN and infinity included, never reach a result; NaN at a visible position always does. A bias of
// -inf masks its pair. Results are bitwise equal for any number of threads.
#include <memory>
#include <optional>
#include <string>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/dropout.h"
#include "heed/kernels/attention/kv_view.h"
#include "heed/kernels/attention/mask.h"

namespace heed::kernels {

// Options: everything that has no gradient.
struct AttentionOptions {
  std::optional<float> scale{};  // of the scores; by default 1 / sqrt(D), and 1 for the additive score
  Mask mask{};
  float softcap{0};  // c: a score s becomes c tanh(s / c), before bias and mask; 0: none
  Dropout dropout{};
};

// Inputs: each has a gradient in AttentionGradients. An empty view of an optional one means 'none'.
struct AttentionInputs {
  View<const float, 4> q{};          // [B,Hq,T,D]
  KvView k{};                        // [B,Hk,S,D]
  KvView v{};                        // [B,Hk,S,Dv]
  View<const float, 4> bias{};       // [B,Hq,T,S], added to the scores; an extent of 1 is broadcast: [1,Hq,T,S]
  View<const float, 1> head_gate{};  // [Hq], a factor for each head's output: 0 switches the head off
  View<const float, 2> w{};          // [Hq,D], of the additive score; empty: the score is the dot product
};

// Outputs: `out`, and optional ones that are written where their view is not empty.
struct AttentionOutputs {
  View<float, 4> out{};    // [B,Hq,T,Dv], overwritten
  View<float, 3> lse{};    // [B,Hq,T]: the natural log-sum-exp of each row, -inf where all keys are masked
  View<float, 4> stats{};  // [B,Hq,T,2]: row statistics that backward and observers need, see below
  // Statistics of the attention weights, before dropout and gate.
  View<float, 3> entropy{};      // [B,Hq,T], in nats; 0 where all keys are masked
  View<float, 4> top_weights{};  // [B,Hq,T,K]: the K largest weights of each row, descending; of equals the first
  View<int32_t, 4> top_keys{};   // [B,Hq,T,K]: their key indices; -1, with weight 0, where a row sees fewer than K
};

// Row statistics are the softmax of a row as two numbers in base 2, weight = 2^(score * log2(e) - stats[0]) / stats[1]:
// a maximum, rounded up to an integer, and the sum. One f32 log-sum-exp would lose the weights at large scores. A row
// whose keys are all masked has the sum 0.

// Gradients: what backward reads beside the inputs, and what it accumulates into. An empty gradient view means 'not
// wanted'.
struct AttentionGradients {
  View<const float, 4> out{};       // [B,Hq,T,Dv], as forward wrote it
  View<const float, 4> stats{};     // [B,Hq,T,2], as forward wrote it
  View<const float, 4> d_out{};     // [B,Hq,T,Dv]
  View<float, 4> dq{}, dk{}, dv{};  // accumulated into, as all below
  View<float, 4> d_bias{};          // of bias's own shape: summed over the extents that were broadcast
  View<float, 1> d_head_gate{};     // [Hq]
  View<float, 2> dw{};              // [Hq,D]
};

// The extents of a problem, in the letters of docs/notation.md.
struct AttentionShape {
  int64_t B = 0, Hq = 0, Hk = 0, T = 0, S = 0, D = 0, Dv = 0;
};

// A plan: arguments checked, kernel chosen, scratch counted, before anything runs. It is valid for every call whose
// views have the shapes and strides it was made for. It borrows the elements of a Dense mask. Copies share their
// contents and are cheap. Making one allocates from the cache of base/allocator.h: no system call after the first of
// its size.
class HEED_API AttentionPlan {
 public:
  enum class Kernel { tiles, decode, backward };

  AttentionPlan();  // empty: to be assigned to, not to be run
  AttentionPlan(const AttentionPlan&) = default;
  AttentionPlan& operator=(const AttentionPlan&) = default;

  // Throw Error, whose text names the argument, what came and what was expected.
  static AttentionPlan forward(const AttentionInputs&, const AttentionOutputs&, const AttentionOptions& = {});
  static AttentionPlan backward(const AttentionInputs&, const AttentionGradients&, const AttentionOptions& = {});

  Kernel kernel() const;
  const AttentionShape& shape() const;
  float scale() const;
  DType kv_dtype() const;

  double flops() const;  // of the matrix products over visible pairs: 2(D + Dv) each forward, 2(3D + 2Dv) backward
  double bytes() const;  // inputs read once, outputs written once
  size_t workspace_bytes(int threads) const;
  std::string describe() const;  // one line for people

  struct Details;  // for the kernels, in plan.h, which is not installed
  const Details& details() const { return *details_; }

 private:
  explicit AttentionPlan(Details&&);
  std::shared_ptr<const Details> details_;  // never null
};

// The workspace holds at least plan.workspace_bytes(parallel.threads()) bytes; nothing is allocated, nothing can fail.
HEED_API void attention_forward(const AttentionPlan&, const AttentionInputs&, const AttentionOutputs&, Workspace&,
                                Parallel&) noexcept;
HEED_API void attention_backward(const AttentionPlan&, const AttentionInputs&, const AttentionGradients&, Workspace&,
                                 Parallel&) noexcept;

// Plan, reserve the workspace and run, in one call. Throw what the plan throws.
HEED_API void attention_forward(const AttentionInputs&, const AttentionOutputs&, const AttentionOptions&, Workspace&,
                                Parallel&);
HEED_API void attention_backward(const AttentionInputs&, const AttentionGradients&, const AttentionOptions&, Workspace&,
                                 Parallel&);

}  // namespace heed::kernels
