// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradients of a step, added up over its micro-batches and over the ranks that compute them.
//
//   GradientSum sum(parameters, {.order = SumOrder::tree, .micro_batches = 8}, communicator, parallel);
//   for (int64_t m = sum.mine().begin; m < sum.mine().end; ++m) {
//     ...                              // adds the gradients of micro-batch m to those of the parameters
//     sum.computed(m);
//   }
//   sum.finish();                      // the parameters' gradients are now those of all, on every rank
//
// Between ranks, each adds up one part of every bucket of parameters, and sends the sum to all: as many bytes as a ring
// all-reduce moves, in a fixed order. Not here: what a micro-batch is (trainer.h), the order (sum_tree.h).
#include <cstdint>
#include <span>
#include <vector>

#include "heed/autograd/parameter.h"
#include "heed/autograd/watch.h"
#include "heed/base/describe.h"
#include "heed/base/parallel.h"
#include "heed/dist/communicator.h"
#include "heed/kernels/optimizer.h"
#include "heed/train/sum_order.h"
#include "heed/train/sum_tree.h"

namespace heed::train {

struct GradientSumOptions {
  SumOrder order{SumOrder::tree};    // or any
  int64_t micro_batches{1};          // of all ranks, at least one each
  int64_t bucket{int64_t{1} << 18};  // parameters that travel together
};

class GradientSum final : public BackwardWatcher {
 public:
  // All are borrowed. The parameters' gradients have to be zero before each step.
  GradientSum(const ParameterStore&, const GradientSumOptions&, dist::Communicator&, Parallel&);

  const SumNode& mine() const { return mine_; }
  // The parameters' gradients are those of micro-batch m, in order tree; in order any, those of all so far.
  void computed(int64_t m);
  // While the backward pass of this rank's last micro-batch runs: this gradient of the store is whole. Buckets of such
  // are sent while others are computed.
  void whole(const Tensor& gradient) override;
  void op_done() override { progress(); }
  // Moves on what is under way.
  void progress();
  void finish();
  // Gives a step up, after an error.
  void clear();

  // Seconds of finish(): how long this rank waited for what could not be hidden.
  double seconds_waited() const { return waited_; }

 private:
  struct Partial {
    SumNode node;
    Tensor sum;
  };
  // Parameters [begin, end) on their way: to the ranks that add up their parts, and from those to all.
  struct Bucket {
    kernels::ElementRange range;
    int tag = 0;
    size_t entries = 0;  // of the store, that have parameters in it
    size_t left = 0;     // of them, that are not whole
    enum class State : uint8_t { local, adding, spreading, done } state = State::local;
    dist::Transfer transfer{};
    std::vector<std::vector<float>> received{};  // a part of each root, in the order of the tree; empty: of my own
  };
  struct Root {
    int rank;
    size_t place;  // among those of its rank
  };

  void entry_is_whole(size_t entry);
  void make_buckets(const ParameterStore&, int64_t size);
  void prepare_last();
  void merge(const kernels::ElementRange&);
  void start(Bucket&);
  void start_adding(Bucket&);
  void add_parts(Bucket&);
  void start_spreading(Bucket&);
  bool advance(Bucket&, bool wait);
  kernels::ElementRange part_of(const Bucket&, int rank) const;
  std::span<float> own_root(size_t place, const kernels::ElementRange&);
  std::span<float> sum_of(const SumNode&, Bucket&, size_t& root);
  Tensor spare();
  void add(std::span<const float> from, std::span<float> to);

  const ParameterStore& parameters_;
  const Tensor gradients_;
  const GradientSumOptions options_;
  dist::Communicator& communicator_;
  Parallel& parallel_;
  SumNode mine_;
  std::vector<SumNode> own_roots_;
  std::vector<Root> roots_;  // of all ranks, from left to right
  std::vector<Bucket> buckets_;
  std::vector<Partial> partials_;         // left of what is in the gradients, from left to right
  std::vector<Tensor> spare_, to_merge_;  // to_merge_: what the last micro-batch's gradients are added to, last first
  std::vector<std::vector<size_t>> buckets_of_entry_;
  size_t to_start_ = 0;  // buckets, from the last to the first: as backward goes, and in the same order on all ranks
  bool last_prepared_ = false;
  double waited_ = 0;
};

}  // namespace heed::train
