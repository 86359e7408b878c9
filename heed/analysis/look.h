// SPDX-License-Identifier: Apache-2.0
#pragma once
// The attention of one word of a sentence by words: how much it attends to each other word, head by head.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/analysis/word_weights.h"
#include "heed/base/export.h"
#include "heed/models/model.h"

namespace heed::analysis {

// The attention weights from one word to each word of the source; the last number is that of the end of the sentence.
// They sum to 1. For a word of several tokens, weights from it are the mean of its tokens', weights to it their sum.
using Look = std::vector<double>;

// The Look of one head.
struct HeadLook {
  std::string layer;  // "encoder.1.self"
  int64_t head = 0;
  Look look;
};

// Of word `word` of the source, in every head of the encoder, in order. `words` are those of the source's tokens
// (text::words_of_tokens), `count` is how many there are. Throws Error for a model that has no encoder with attention.
HEED_API std::vector<HeadLook> source_looks(nn::Pass&, const models::Model&, std::span<const int32_t> source,
                                            std::span<const int64_t> words, int64_t count, int64_t word);

// Of each word of the target when it was predicted, in cross-attention.
HEED_API std::vector<Look> target_looks(const Tensor& cross_weights, const WordMap&, const WordCounts&);

}  // namespace heed::analysis
