#pragma once
// Attention, fused and exact, memory linear in T and S:
//
//   out = gate * dropout(softmax(softcap(scale * f(q, k)) + alibi + bias, masked)) v
//
//   q [B,Hq,T,D]  k [B,Hk,S,D]  v [B,Hk,S,Dv]  ->  out [B,Hq,T,Dv],   Hq a multiple of Hk
//
// The score f(q, k) is the product q . k, or the additive sum_a w_a tanh(q_a + k_a) where w is given.
// Not here: projections (nn/attention.h), the specification in double precision (kernels/reference/attention.h),
// looking at whole rows and maps of weights (observe.h). Views may have any strides with a contiguous last dimension:
// [B,T,H,D] and packed QKV need no copy. A row that may see nothing is zero, with zero gradients. What stands at masked
// places, NaN and infinity included, never reaches a result; NaN in a visible place always does. A bias of -inf hides
// as a mask does. Results are the same bits for any number of threads. k and v may be stored in 16 bits; everything
// else is f32.
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

// What is not learned.
struct AttentionOptions {
  std::optional<float> scale{};  // of the scores; by default 1 / sqrt(D), and 1 for the additive score
  Mask mask{};
  float softcap{0};  // c: a score s becomes c tanh(s / c), before bias and mask; 0: none
  Dropout dropout{};
};

// What is, or may be: each has its gradient.
struct AttentionInputs {
  View<const float, 4> q{};          // [B,Hq,T,D]
  KvView k{};                        // [B,Hk,S,D]
  KvView v{};                        // [B,Hk,S,Dv]
  View<const float, 4> bias{};       // [B,Hq,T,S], added to the scores; an extent of 1 serves all: [1,Hq,T,S]
  View<const float, 1> head_gate{};  // [Hq], a factor a head: 0 switches it off
  View<const float, 2> w{};          // [Hq,D], of the additive score; empty: the score is the product
};

struct AttentionOutputs {
  View<float, 4> out{};    // [B,Hq,T,Dv], overwritten
  View<float, 3> lse{};    // [B,Hq,T], if wanted: the natural log-sum-exp of each row, -inf where it sees nothing
  View<float, 4> stats{};  // [B,Hq,T,2], if wanted: what backward and observers need, see below
  // Observed on the way, if wanted; of the weights before dropout and gate.
  View<float, 3> entropy{};      // [B,Hq,T], in nats; 0 for a row that sees nothing
  View<float, 4> top_weights{};  // [B,Hq,T,K]: the K largest weights of each row, falling; of equals the first
  View<int32_t, 4> top_keys{};   // [B,Hq,T,K]: and whose they are; -1, with weight 0, where a row sees fewer
};

// The softmax of a row is kept as two numbers in base 2, weight = 2^(score * log2(e) - stats[0]) / stats[1]: a maximum,
// rounded up to an integer, and the sum. One f32 log-sum-exp would lose the weights at large scores. A row that sees
// nothing has the sum 0.

struct AttentionGradients {
  View<const float, 4> out{};       // [B,Hq,T,Dv], as forward gave it
  View<const float, 4> stats{};     // [B,Hq,T,2], as forward gave it
  View<const float, 4> d_out{};     // [B,Hq,T,Dv]
  View<float, 4> dq{}, dk{}, dv{};  // added to; an empty view: not wanted
  View<float, 4> d_bias{};          // of bias's own shape: what was spread is summed
  View<float, 1> d_head_gate{};     // [Hq]
  View<float, 2> dw{};              // [Hq,D]
};

struct AttentionShape {
  int64_t B = 0, Hq = 0, Hk = 0, T = 0, S = 0, D = 0, Dv = 0;
};

// What a call will do, settled before anything runs: arguments checked, kernel chosen, scratch counted.
// A plan fits every call whose views have the shapes and strides it was made for. It borrows the numbers of a Dense
// mask. Copies share what was settled, and are cheap. Making one allocates from base/allocator.h: nothing, after the
// first of its size.
class HEED_API AttentionPlan {
 public:
  enum class Kernel { tiles, decode, backward };

  AttentionPlan();  // of nothing: to be assigned to, not to be run
  AttentionPlan(const AttentionPlan&) = default;
  AttentionPlan& operator=(const AttentionPlan&) = default;

  // These throw Error, with the argument, what came and what was expected.
  static AttentionPlan forward(const AttentionInputs&, const AttentionOutputs&, const AttentionOptions& = {});
  static AttentionPlan backward(const AttentionInputs&, const AttentionGradients&, const AttentionOptions& = {});

  Kernel kernel() const;
  const AttentionShape& shape() const;
  float scale() const;
  DType kv_dtype() const;

  double flops() const;  // of the products over visible pairs: 2(D + Dv) each forward, 2(3D + 2Dv) backward
  double bytes() const;  // inputs read once, outputs written once
  size_t workspace_bytes(int threads) const;
  std::string describe() const;  // one line for people

  struct Details;  // what the kernels read: plan.h, which is not installed
  const Details& details() const { return *details_; }

 private:
  explicit AttentionPlan(Details&&);
  std::shared_ptr<const Details> details_;  // never null
};

// The workspace has at least plan.workspace_bytes(parallel.threads()); nothing is allocated and nothing can fail.
HEED_API void attention_forward(const AttentionPlan&, const AttentionInputs&, const AttentionOutputs&, Workspace&,
                                Parallel&) noexcept;
HEED_API void attention_backward(const AttentionPlan&, const AttentionInputs&, const AttentionGradients&, Workspace&,
                                 Parallel&) noexcept;

// Plan, reserve and run in one call, for those who call once. These throw what the plan throws.
HEED_API void attention_forward(const AttentionInputs&, const AttentionOutputs&, const AttentionOptions&, Workspace&,
                                Parallel&);
HEED_API void attention_backward(const AttentionInputs&, const AttentionGradients&, const AttentionOptions&, Workspace&,
                                 Parallel&);

}  // namespace heed::kernels
