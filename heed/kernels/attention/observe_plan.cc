// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of observers and divides their work.
#include <memory>
#include <utility>

#include "heed/kernels/attention/check.h"
#include "heed/kernels/attention/observe_blocks.h"
#include "heed/kernels/attention/plan.h"

namespace heed::kernels {

namespace {

constexpr int64_t kTasks = 32;      // keys are split where there are few heads, for about as many tasks
constexpr int64_t kMinChunk = 512;  // keys

void check_rows(const AttentionObservations& to, const AttentionShape& s) {
  for (size_t i = 0; i < to.queries.size(); ++i) {
    if (to.queries[i] >= 0 && to.queries[i] < s.T) continue;
    fail("observe: queries[" + std::to_string(i) + "] is " + std::to_string(to.queries[i]) + ", expected " +
         (s.T == 0 ? "none (T is 0)" : "0 to " + std::to_string(s.T - 1) + " (T - 1)"));
  }
  if (to.rows || !to.queries.empty()) check_output("observe: rows", to.rows, {s.B, s.Hq, std::ssize(to.queries), s.S});
}

void check_map(const char* name, const View<float, 4>& map, const View<float, 4>& both, const AttentionShape& s) {
  if (!map) return;
  if (both.shape(2) < 0 || both.shape(3) < 0) {
    fail(std::string(name) + " has shape " + to_string(map.shape()) + ", expected no negative extent");
  }
  check_output(name, map, {s.B, s.Hq, both.shape(2), both.shape(3)});
}

void check_stats(const View<const float, 4>& stats, const AttentionObservations& to, const AttentionShape& s) {
  const bool weights = to.received || to.map_mean || to.map_max || (to.rows && to.stage == AttentionStage::weight);
  if (!stats && !weights) return;
  check_exact("observe: stats", stats.shape(), {s.B, s.Hq, s.T, 2});
  check_readable("observe: stats", stats);
}

}  // namespace

ObservationPlan::ObservationPlan() {
  static const std::shared_ptr<const Details> nothing = std::make_shared<const Details>();
  details_ = nothing;
}

ObservationPlan::ObservationPlan(Details&& details)
    : details_(std::allocate_shared<const Details>(CachedAllocator<Details>(), std::move(details))) {}

ObservationPlan ObservationPlan::make(const AttentionInputs& in, const View<const float, 4>& stats,
                                      const AttentionObservations& to, const AttentionOptions& options) {
  Details plan{plan_scores(in, options)};
  const AttentionShape& s = plan.scores.shape;
  check_rows(to, s);
  if (to.received) {
    check_exact("observe: received", to.received.shape(), {s.B, s.Hq, s.S});
    check_writable("observe: received", to.received);
  }
  check_map("observe: map_mean", to.map_mean, map_of(to), s);
  check_map("observe: map_max", to.map_max, map_of(to), s);
  check_stats(stats, to, s);
  const int64_t wanted = ceil_div(kTasks, std::max<int64_t>(1, s.B * s.Hq));
  plan.key_chunks = std::max<int64_t>(1, std::min({wanted, s.S / kMinChunk, key_pools(s, to).count}));
  return ObservationPlan(std::move(plan));
}

size_t ObservationPlan::workspace_bytes(int threads) const {
  return sizeof(float) * static_cast<size_t>(ObserveScratch(details_->scores, nullptr).floats * threads);
}

void attention_observe(const AttentionInputs& in, const View<const float, 4>& stats, const AttentionObservations& to,
                       const AttentionOptions& options, Workspace& workspace, Parallel& parallel) {
  const ObservationPlan plan = ObservationPlan::make(in, stats, to, options);
  workspace.reserve(plan.workspace_bytes(parallel.threads()));
  attention_observe(plan, in, stats, to, workspace, parallel);
}

}  // namespace heed::kernels
