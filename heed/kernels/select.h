// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest numbers of a row with their places, and the row's log-sum-exp: what a step of a search wants of the
// logits. Nothing as long as the row is stored or sorted: numbers are compared with the lowest of those kept so far, a
// vector at a time, and few enter. Not here: how hypotheses are scored (decode/search.h).
#include <cstdint>
#include <span>

#include "heed/base/export.h"

namespace heed::kernels {

struct Ranked {
  float value;
  int32_t index;
};

// log-softmax of x is (x - max) - log_sum, as softmax.h has it; NaN where a number is NaN or +inf, or all are -inf.
struct RowSelection {
  float max = 0, log_sum = 0;
  int64_t found = 0;  // entries of `to` that were written: fewer than it has room for where the row has not as many

  float log_probability(float x) const { return (x - max) - log_sum; }
};

// The largest of x into `to`, largest first; of equals, the one with the lower index. NaN and -inf are never among
// them.
HEED_API RowSelection select_largest(std::span<const float> x, std::span<Ranked> to) noexcept;

}  // namespace heed::kernels
