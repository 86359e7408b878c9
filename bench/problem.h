// SPDX-License-Identifier: Apache-2.0
#pragma once
// One case of the grid with memory, random numbers and plans: attention and its unfused twin, ready to be run.
#include <memory>
#include <vector>

#include "bench/grid.h"
#include "bench/machine.h"
#include "bench/unfused.h"
#include "heed/base/parallel.h"
#include "heed/base/rng.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/observe.h"
#include "heed/kernels/attention/visibility.h"

namespace heed::bench {

class Problem {
 public:
  Problem(const Case&, Parallel&);
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  // Each can be run any number of times; backward needs one forward_with_stats before it.
  void forward();             // and what the extra wants to see
  void forward_with_stats();  // for backward or a second look
  void backward();
  Unfused* unfused() { return unfused_.get(); }  // null where there is an extra, which it does not know

  // The memory of k and v, each one contiguous piece. Not of a packed layout.
  std::vector<Bytes> keys_and_values() const;

  const kernels::AttentionInputs& inputs() const { return inputs_; }
  const kernels::AttentionOutputs& outputs() const { return outputs_; }
  const kernels::AttentionObservations& observations() const { return observations_; }
  const kernels::AttentionGradients& gradients() const { return gradients_; }
  const kernels::AttentionOptions& options() const { return options_; }

 private:
  template <class T, size_t Rank>
  View<T, Rank> array(const Dims<Rank>& shape);
  View<float, 4> tensor(const Dims<4>& bhtd, Rng* rng);
  template <class T>
  kernels::KvView narrow(const View<float, 4>& wide);
  View<const int32_t, 2> block_table(int64_t blocks_a_batch, Rng&);
  kernels::KvView paged(const View<float, 4>& rows, int64_t block, const View<const int32_t, 2>& table);
  void lay_out(Rng&);
  void add_extra(Rng&);
  void change_scores(Rng&);

  Case case_;
  Parallel& parallel_;
  std::vector<std::unique_ptr<Workspace>> memory_;
  View<float, 4> q_, k_, v_, out_, d_out_;
  std::vector<int64_t> lengths_;
  kernels::AttentionOptions options_;
  kernels::Visibility visibility_;
  kernels::AttentionInputs inputs_;
  kernels::AttentionOutputs outputs_, outputs_with_stats_;
  kernels::AttentionObservations observations_;
  kernels::AttentionGradients gradients_;
  kernels::AttentionPlan forward_plan_, stats_plan_, backward_plan_;
  kernels::ObservationPlan observation_plan_;
  Workspace workspace_;
  std::unique_ptr<Unfused> unfused_;
};

}  // namespace heed::bench
