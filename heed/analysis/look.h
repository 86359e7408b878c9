#pragma once
// What a word looks at, by words: the attention of one word of a sentence, head by head.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/analysis/word_weights.h"
#include "heed/base/export.h"
#include "heed/models/model.h"

namespace heed::analysis {

// The weights that a word gives to each word of the source; the last number is what the end of the sentence gets. They
// add up to 1. A word of several tokens looks as they do on average, and gets what all of them get.
using Look = std::vector<double>;

struct HeadLook {
  std::string layer;  // "encoder.1.self"
  int64_t head = 0;
  Look look;
};

// Of word `word` of the source, in every head of the encoder, in order. `words` are those of the source's tokens
// (text::words_of_tokens), `count` is how many there are. Throws Error for a model that has no encoder with attention.
HEED_API std::vector<HeadLook> source_looks(nn::Pass&, const models::Model&, std::span<const int32_t> source,
                                            std::span<const int64_t> words, int64_t count, int64_t word);

// Of each word of the target while it was chosen, in cross-attention.
HEED_API std::vector<Look> target_looks(const Tensor& cross_weights, const WordMap&, const WordCounts&);

}  // namespace heed::analysis
