// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ring attention: self-attention over one sequence whose rows are spread over ranks, for sequences that no machine has
// the memory for. Exact, forward and backward: each rank gets the rows of what attention_forward and attention_backward
// compute over the whole sequence, to rounding, and holds no more than some blocks of its own size.
//
//   Each rank has the rows of q, k and v that Placement gives it. Keys and values go round the ring of ranks; each rank
//   computes its queries against the block that it has, while the next one arrives, and merges what it gets with what
//   it has (merge_rows.h). In backward the gradients of keys and values go round behind them, and come home at the end.
//
// Causal, Window, Lengths and Alibi count positions in the whole sequence, and so do top_keys. Not here: bias, boolean
// masks, packed sequences, dropout, head gates, the additive score, keys and values in 16 bits: they throw. Not here,
// too: attention between two sequences.
#include <memory>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/dist/communicator.h"
#include "heed/dist/placement.h"
#include "heed/kernels/attention/attention.h"
#include "heed/kernels/attention/observe.h"

namespace heed::dist {

// Every rank calls the same passes in the same order, with the same extents and options. That is checked: where it is
// not so, or where a rank's arguments are wrong, all of them throw Error, and none waits for a message that never
// comes. The results are the same bits for any number of threads, but depend on the number of ranks.
class HEED_API RingAttention {
 public:
  // Of a sequence of `length` rows. Communicator and threads are borrowed.
  RingAttention(Communicator& communicator, int64_t length, Parallel& parallel);
  ~RingAttention();
  RingAttention(const RingAttention&) = delete;
  RingAttention& operator=(const RingAttention&) = delete;

  const Placement& placement() const;
  int64_t rows() const;  // R, that this rank holds

  // q [B,Hq,R,D]  k [B,Hk,R,D]  v [B,Hk,R,Dv]  ->  out [B,Hq,R,Dv], and what else of AttentionOutputs is wanted
  void forward(const kernels::AttentionInputs&, const kernels::AttentionOutputs&,
               const kernels::AttentionOptions& = {});
  // With `out` and `stats` as forward wrote them. Gradients are accumulated into.
  void backward(const kernels::AttentionInputs&, const kernels::AttentionGradients&,
                const kernels::AttentionOptions& = {});
  // A second pass over the scores, with the statistics that forward wrote: `received` [B,Hq,R], what this rank's keys
  // receive from all queries of the sequence; of maps of M x N cells over the whole sequence, the rows of cells of this
  // rank's queries [B,Hq,M/n,N], where the number of chunks, 2 n, divides M, N and the length of the sequence. Whole
  // rows throw.
  void observe(const kernels::AttentionInputs&, const View<const float, 4>& stats,
               const kernels::AttentionObservations&, const kernels::AttentionOptions& = {});

  // Of all calls so far, on this rank.
  struct Costs {
    double pairs = 0;           // visible pairs of a query and a key that it has computed, of all heads
    int64_t bytes_sent = 0;     // to the next rank
    double seconds_waited = 0;  // for messages that had not come when they were needed
    size_t bytes_held = 0;      // at most, beside the arguments
  };
  const Costs& costs() const;

 private:
  struct Rank;
  std::unique_ptr<Rank> rank_;
};

}  // namespace heed::dist
