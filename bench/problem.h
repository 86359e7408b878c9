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

namespace heed::bench {

class Problem {
 public:
  Problem(const Case&, Parallel&);
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  // Each can be run any number of times; backward needs one forward_with_stats before it.
  void forward();
  void forward_with_stats();
  void backward();
  Unfused& unfused() { return *unfused_; }

  // The memory of k and v, each one contiguous piece. Not of a packed layout.
  std::vector<Bytes> keys_and_values() const;

  const kernels::AttentionInputs& inputs() const { return inputs_; }
  const kernels::AttentionOutputs& outputs() const { return outputs_; }

 private:
  View<float, 4> tensor(const Dims<4>& bhtd, Rng* rng);
  template <class T>
  kernels::KvView narrow(const View<float, 4>& wide);
  void lay_out(Rng&);

  Case case_;
  Parallel& parallel_;
  std::vector<std::unique_ptr<Workspace>> memory_;
  View<float, 4> q_, k_, v_, out_, d_out_;
  std::vector<int64_t> lengths_;
  kernels::Visibility visibility_;
  kernels::AttentionInputs inputs_;
  kernels::AttentionOutputs outputs_;
  kernels::AttentionGradients gradients_;
  kernels::AttentionPlan forward_plan_, stats_plan_, backward_plan_;
  Workspace workspace_;
  std::unique_ptr<Unfused> unfused_;
};

}  // namespace heed::bench
