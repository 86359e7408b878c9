// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention weights from tokens to tokens, summed up by words.
// Not here: the weights of tokens (weights.h, align.h), and what is concluded from those of words (align.h, look.h).
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/tensor/tensor.h"

namespace heed::analysis {

// The word that each token of the source and of the target belongs to, as text::words_of_tokens gives them.
struct WordMap {
  std::vector<int64_t> source, target;
};
// How many words there are.
struct WordCounts {
  int64_t source = 0, target = 0;
};

// The weights from one word to each word of the source; the last number is for tokens that are no word, such as the end
// of the sentence.
class HEED_API WordWeights {
 public:
  WordWeights(std::span<const int64_t> source_words, int64_t count)
      : words_(source_words), sums_(static_cast<size_t>(count) + 1) {}

  // Adds one more token of the word, with weight row[s] to token s of the source.
  void add(std::span<const float> row);

  int64_t tokens() const { return tokens_; }
  const std::vector<double>& sums() const { return sums_; }
  std::vector<double> mean() const;  // of its tokens; zeros where it has none

 private:
  std::span<const int64_t> words_;
  std::vector<double> sums_;
  int64_t tokens_ = 0;
};

// Of each word of the target, from row `row` of weights [B,T,S]. Borrows the map.
HEED_API std::vector<WordWeights> weights_by_word(const Tensor& weights, int64_t row, const WordMap&,
                                                  const WordCounts&);

}  // namespace heed::analysis
