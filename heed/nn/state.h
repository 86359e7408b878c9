#pragma once
// State: what decoding carries from step to step, one type for every model: keys and values so far of each attention
// layer, and tensors such as a recurrent layer's last state. Rows are hypotheses; reorder() lets each go on from
// another.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/tensor/tensor.h"

namespace heed::nn {

// Keys and values of one attention layer, [B, capacity, width], of which `length` rows are there. Stored in 16 bits
// they take half the memory, and each number has a relative error of at most 2^-8 (bf16) or 2^-11 (f16, from 2^-14 to
// 65504).
struct HEED_API KvCache {
  Tensor k{}, v{};
  int64_t length = 0;
  std::optional<DType> dtype{};  // that rows are stored in; none: the one that they come in

  // All rows of k and v [B,S,width], shared where they are in `dtype` already.
  static KvCache of(const Tensor& k, const Tensor& v, std::optional<DType> dtype = {});
  // The rows of k and v [B,n,width] go after those that are there. Capacity grows by doubling.
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
