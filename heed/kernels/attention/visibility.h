// SPDX-License-Identifier: Apache-2.0
#pragma once
// Visibility: a mask checked against shapes and compiled to the range of keys that each query sees. It owns what it
// needs, and its queries cannot fail. Not in it: Dense, which leaves no ranges. Internal: users give a Mask (mask.h).
#include <cstdint>

#include "heed/base/allocator.h"
#include "heed/base/export.h"
#include "heed/kernels/attention/mask.h"

namespace heed::kernels {

// Keys [begin, end); empty where end <= begin.
struct KeyRange {
  int64_t begin, end;
  constexpr bool empty() const { return end <= begin; }
};

class HEED_API Visibility {
 public:
  Visibility() = default;
  // Throws Error where the mask does not fit B sequences of T queries over S keys.
  Visibility(const Mask& mask, int64_t B, int64_t T, int64_t S);

  // The keys that query t of batch b may see, within [0, S); begin == end where there are none.
  KeyRange row(int64_t b, int64_t t) const noexcept;
  // The position of query t of batch b among the keys, as Alibi aligns it; 0 without Alibi.
  int64_t position(int64_t b, int64_t t) const noexcept;
  // Nothing is masked: every row is [0, S).
  bool everything() const noexcept { return everything_; }
  // The number of visible (query, key) pairs of one head, over all batches.
  int64_t pairs() const noexcept { return pairs_; }
  // Causal in effect: later queries see later keys, so late query blocks are the expensive ones.
  bool causal() const noexcept { return causal_ && !everything_; }

 private:
  // Queries [.., query_end) that see keys of [key_begin, key_end), in a band along the diagonal: query t sees
  // t + lower <= s < t + upper, and its position is t + diagonal.
  struct Sequence {
    int64_t query_end, key_begin, key_end, lower, upper, diagonal;
  };
  // The sequence of query t of batch b; null for a query after the last one.
  const Sequence* sequence(int64_t b, int64_t t) const noexcept;
  void add_sequence(const Mask& mask, KeyRange queries, KeyRange keys, int64_t visible_end);

  bool everything_ = true, causal_ = false, packed_ = false;
  int64_t pairs_ = 0;
  CachedVector<Sequence> sequences_;  // one for each batch; packed: in order
};

}  // namespace heed::kernels
