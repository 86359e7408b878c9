// SPDX-License-Identifier: Apache-2.0
#pragma once
// Observing attention weights without ever storing the T x S matrix. Entropy and the top-k keys come with the forward
// pass (AttentionOutputs); here is what needs a second pass over the scores, with the row statistics that forward
// wrote: whole rows at any stage, the attention that each key receives, and the matrix pooled to a map of any size.
// Weights are those before dropout and gate, for every score, mask, bias and storage that forward takes.
#include <memory>
#include <span>

#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"

namespace heed::kernels {

// The stage of the computation at which rows are observed. The first two include masked pairs.
enum class AttentionStage {
  raw,     // scale * f(q, k)
  capped,  // after the softcap
  masked,  // with ALiBi and bias; -inf where masked
  weight,  // after the softmax; 0 where masked, and throughout where a row sees nothing
};

// What to observe, and the views to write it to. An empty view means 'not wanted'.
struct AttentionObservations {
  std::span<const int64_t> queries{};  // the queries whose rows are wanted, each in [0, T); they may repeat
  AttentionStage stage{AttentionStage::weight};
  View<float, 4> rows{};      // [B,Hq,queries,S]: overwritten, as all of these
  View<float, 3> received{};  // [B,Hq,S]: the sum over all queries of their weight on the key
  // [B,Hq,M,N], both of one shape: cell (i, j) pools queries [i T / M, (i + 1) T / M) and keys [j S / N, (j + 1) S /
  // N), rounded down and each at least one wide, so that a map may also be larger than T x S. The mean counts masked
  // pairs as 0. All cells are 0 where T or S is 0.
  View<float, 4> map_mean{}, map_max{};
};

// A plan, as AttentionPlan: valid for every call whose views have the shapes and strides it was made for. It checks the
// queries it is given; a later call may name others, as many and in range.
class HEED_API ObservationPlan {
 public:
  ObservationPlan();  // empty: to be assigned to, not to be run
  ObservationPlan(const ObservationPlan&) = default;
  ObservationPlan& operator=(const ObservationPlan&) = default;

  // Throws Error. `stats` as forward wrote them; empty where only rows of scores are wanted.
  static ObservationPlan make(const AttentionInputs&, const View<const float, 4>& stats, const AttentionObservations&,
                              const AttentionOptions& = {});

  size_t workspace_bytes(int threads) const;

  struct Details;  // for the kernels, in plan.h, which is not installed
  const Details& details() const { return *details_; }

 private:
  explicit ObservationPlan(Details&&);
  std::shared_ptr<const Details> details_;  // never null
};

// The workspace holds at least plan.workspace_bytes(parallel.threads()) bytes; nothing is allocated, nothing can fail.
HEED_API void attention_observe(const ObservationPlan&, const AttentionInputs&, const View<const float, 4>& stats,
                                const AttentionObservations&, Workspace&, Parallel&) noexcept;
// Plan, reserve the workspace and run, in one call. Throws what the plan throws.
HEED_API void attention_observe(const AttentionInputs&, const View<const float, 4>& stats, const AttentionObservations&,
                                const AttentionOptions&, Workspace&, Parallel&);

}  // namespace heed::kernels
