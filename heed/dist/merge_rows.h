// SPDX-License-Identifier: Apache-2.0
#pragma once
// Merges rows of attention over some keys with the same rows over others: the result is that over all of them, exact to
// rounding. With the statistics of a row, a maximum m in base 2 and a sum l (kernels/attention/attention.h),
//
//   m = max(m_a, m_b)    l = 2^(m_a - m) l_a + 2^(m_b - m) l_b    share_a = 2^(m_a - m) l_a / l
//   out     = share_a out_a + share_b out_b
//   entropy = share_a (entropy_a - ln share_a) + share_b (entropy_b - ln share_b)
//   top     = the K largest of share_a top_a and share_b top_b
//
// Maxima are integers, so rescaling a sum is exact. Not here: the attention that a key receives and maps, which take a
// second pass with the final statistics (ring_attention.h).
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/kernels/attention/attention.h"

namespace heed::dist {

// Rows that have seen no key: zeros, as attention_forward writes where all keys are masked.
HEED_API void clear_rows(const kernels::AttentionOutputs& rows);

// rows <- rows merged with `part`, whose keys count from first_key on: its top_keys are moved there. Both have `stats`,
// and `part` has every output that `rows` has but lse, which is computed. Throws Error for other shapes. The same bits
// for any number of threads.
HEED_API void merge_rows(const kernels::AttentionOutputs& rows, const kernels::AttentionOutputs& part,
                         int64_t first_key, Parallel& parallel);

}  // namespace heed::dist
