// SPDX-License-Identifier: Apache-2.0
#pragma once
// The attention weights of an event as a matrix: for sentences, not for long texts. What needs no T x S numbers (maps,
// the attention that keys receive) is in kernels/attention/observe.h.
#include <cstdint>
#include <span>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/workspace.h"
#include "heed/nn/observer.h"

namespace heed::nn {

// [B,Hq,T,S] in the dtype of the event: after the softmax, before dropout and head gate. 0 where masked; a row sums to
// 1, or is all 0 where every key is masked.
HEED_API Tensor attention_weights(const AttentionEvent&, Workspace&, Parallel&);
// [B,Hq,queries,S]: of some of the queries, each in [0,T); they may repeat. Throws Error.
HEED_API Tensor attention_weights(const AttentionEvent&, std::span<const int64_t> queries, Workspace&, Parallel&);

}  // namespace heed::nn
