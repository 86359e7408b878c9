#pragma once
// State: what decoding carries from step to step, one type for every model: keys and values so far of each attention
// layer, and tensors such as a recurrent layer's last state. Rows are hypotheses; reorder() lets each go on from
// another.
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/tensor/tensor.h"

namespace heed::nn {

// Keys and values of one attention layer, [B, capacity, width], of which `length` rows are there.
struct HEED_API KvCache {
  Tensor k{}, v{};
  int64_t length = 0;

  // Room for the rows of k and v [B,n,width] after those that are there: grows by doubling.
  void append(const Tensor& new_k, const Tensor& new_v);
};

struct HEED_API State {
  std::vector<KvCache> self;            // grow step by step
  std::vector<KvCache> cross;           // made once, from the source
  std::vector<int64_t> source_lengths;  // [B], of cross
  std::vector<Tensor> hidden;           // [B,...]: carried as they are
  int64_t length = 0;                   // steps so far

  // Row i goes on from what row parents[i] was; there may be more or fewer rows than before.
  void reorder(std::span<const int64_t> parents);
  size_t bytes() const;
};

}  // namespace heed::nn
