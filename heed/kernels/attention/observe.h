#pragma once
// Looking into attention: what its weights are, without ever storing T x S of them. Entropy and the strongest keys come
// with the forward pass (AttentionOutputs); here is what needs a second pass over the scores, with the row statistics
// that forward gave: whole rows at any stage, the attention that each key receives, and a map pooled to any size.
// All of it is of the weights before dropout and gate, for every score, mask, bias and storage that forward knows.
#include <memory>
#include <span>

#include "heed/base/export.h"
#include "heed/kernels/attention/attention.h"

namespace heed::kernels {

// Where a row is looked at. The first two are of every pair, hidden ones too.
enum class AttentionStage {
  raw,     // scale * f(q, k)
  capped,  // after the softcap
  masked,  // with ALiBi and bias; -inf where hidden
  weight,  // after the softmax; 0 where hidden, and throughout where a row sees nothing
};

// An empty view: not wanted.
struct AttentionObservations {
  std::span<const int64_t> queries{};  // the rows to look at, each in [0, T); they may repeat
  AttentionStage stage{AttentionStage::weight};
  View<float, 4> rows{};      // [B,Hq,queries,S]: overwritten, as all of these are
  View<float, 3> received{};  // [B,Hq,S]: the sum over all queries of their weight on the key
  // [B,Hq,M,N], both of one shape: cell (i, j) pools queries [i T / M, (i + 1) T / M) and keys [j S / N, (j + 1) S /
  // N), rounded down and each at least one wide, so that a map may also be larger than T x S. The mean counts hidden
  // pairs as 0; so are all cells where there are no queries or no keys.
  View<float, 4> map_mean{}, map_max{};
};

// As AttentionPlan: it fits every call whose views have the shapes and strides it was made for. It checks the queries
// that it is shown; a later call may name others, as many and in range.
class HEED_API ObservationPlan {
 public:
  ObservationPlan();  // of nothing: to be assigned to, not to be run
  ObservationPlan(const ObservationPlan&) = default;
  ObservationPlan& operator=(const ObservationPlan&) = default;

  // Throws Error. `stats` as forward gave them; they may be empty where only rows of scores are wanted.
  static ObservationPlan make(const AttentionInputs&, const View<const float, 4>& stats, const AttentionObservations&,
                              const AttentionOptions& = {});

  size_t workspace_bytes(int threads) const;

  struct Details;  // what the kernels read: plan.h, which is not installed
  const Details& details() const { return *details_; }

 private:
  explicit ObservationPlan(Details&&);
  std::shared_ptr<const Details> details_;  // never null
};

// The workspace has at least plan.workspace_bytes(parallel.threads()); nothing is allocated and nothing can fail.
HEED_API void attention_observe(const ObservationPlan&, const AttentionInputs&, const View<const float, 4>& stats,
                                const AttentionObservations&, Workspace&, Parallel&) noexcept;
// Plan, reserve and run in one call. Throws what the plan throws.
HEED_API void attention_observe(const AttentionInputs&, const View<const float, 4>& stats, const AttentionObservations&,
                                const AttentionOptions&, Workspace&, Parallel&);

}  // namespace heed::kernels
