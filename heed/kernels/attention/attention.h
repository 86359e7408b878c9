#pragma once
// Scaled dot-product attention, fused and exact: out = softmax(scale * q k^T, masked) v, memory linear in T and S.
// Not here: projections (nn/attention.h), the specification in double precision (kernels/reference/attention.h).
//
//   q [B,Hq,T,D]  k [B,Hk,S,D]  v [B,Hk,S,Dv]  ->  out [B,Hq,T,Dv],   Hq a multiple of Hk
//
// Views may have any strides with a contiguous last dimension: [B,T,H,D] and packed QKV need no copy.
// A row that may see nothing is zero, with zero gradients. What stands at masked places, NaN and infinity included,
// never reaches a result; NaN in a visible place always does.
// Results are the same bits for any number of threads. k and v may be stored in 16 bits; everything else is f32.
#include <optional>
#include <string>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/kv_view.h"
#include "heed/kernels/attention/mask.h"

namespace heed::kernels {

struct AttentionOptions {
  std::optional<float> scale{};  // of the scores; by default 1 / sqrt(D)
  Mask mask{};
};

struct AttentionInputs {
  View<const float, 4> q{};  // [B,Hq,T,D]
  KvView k{};                // [B,Hk,S,D]
  KvView v{};                // [B,Hk,S,Dv]
};

struct AttentionOutputs {
  View<float, 4> out{};    // [B,Hq,T,Dv], overwritten
  View<float, 3> lse{};    // [B,Hq,T], if wanted: the natural log-sum-exp of each row, -inf where it sees nothing
  View<float, 4> stats{};  // [B,Hq,T,2], if wanted: what backward needs, see below
};

// The softmax of a row is kept as two numbers in base 2, weight = 2^(score * log2(e) - stats[0]) / stats[1]: a maximum,
// rounded up to an integer, and the sum. One f32 log-sum-exp would lose the weights at large scores. A row that sees
// nothing has the sum 0.

struct AttentionGradients {
  View<const float, 4> out{};       // [B,Hq,T,Dv], as forward gave it
  View<const float, 4> stats{};     // [B,Hq,T,2], as forward gave it
  View<const float, 4> d_out{};     // [B,Hq,T,Dv]
  View<float, 4> dq{}, dk{}, dv{};  // added to; an empty view: not wanted
};

struct AttentionShape {
  int64_t B = 0, Hq = 0, Hk = 0, T = 0, S = 0, D = 0, Dv = 0;
};

// What a call will do, settled before anything runs: arguments checked, kernel chosen, scratch counted.
// A plan fits every call whose views have the shapes and strides it was made for.
class HEED_API AttentionPlan {
 public:
  enum class Kernel { tiles, decode, backward };
  // How the work is cut. It depends on shapes and strides alone, so results do not depend on threads.
  struct Blocking {
    int64_t queries = 0;     // that a task works on at a time
    int64_t key_chunk = 0;   // keys of one task (backward), or of one partial sum of the output (decode)
    int64_t key_chunks = 1;  // what they give to dq, or to out, is added in their order
    bool gather = false;     // rows of k and v that lie far apart, or in 16 bits, are copied to f32 a block at a time
  };

  // These throw Error, with the argument, what came and what was expected.
  static AttentionPlan forward(const AttentionInputs&, const AttentionOutputs&, const AttentionOptions& = {});
  static AttentionPlan backward(const AttentionInputs&, const AttentionGradients&, const AttentionOptions& = {});

  Kernel kernel() const { return kernel_; }
  const AttentionShape& shape() const { return shape_; }
  const Blocking& blocking() const { return blocking_; }
  float scale() const { return scale_; }
  const Visibility& visibility() const { return visibility_; }

  double flops() const;  // of the products over visible pairs: 2(D + Dv) each forward, 2(3D + 2Dv) backward
  double bytes() const;  // inputs read once, outputs written once
  size_t workspace_bytes(int threads) const;
  std::string describe() const;  // one line for people

 private:
  Kernel kernel_ = Kernel::tiles;
  AttentionShape shape_;
  DType kv_dtype_ = DType::f32;
  float scale_ = 1;
  Visibility visibility_;
  Blocking blocking_;
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
