// SPDX-License-Identifier: Apache-2.0
#pragma once
// The attention of one word of a translation by words: how much it attends to each word of the source.
#include <vector>

#include "heed/analysis/word_weights.h"
#include "heed/base/export.h"

namespace heed::analysis {

// The attention weights from one word to each word of the source; the last number is that of the end of the sentence.
// They sum to 1. For a word of several tokens, weights from it are the mean of its tokens', weights to it their sum.
using Look = std::vector<double>;

// Of each word of the target when it was predicted, in cross-attention.
HEED_API std::vector<Look> target_looks(const Tensor& cross_weights, const WordMap&, const WordCounts&);

}  // namespace heed::analysis
