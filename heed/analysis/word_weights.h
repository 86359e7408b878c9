#pragma once
// Attention by words: what tokens give to tokens, gathered by the words that these are parts of.
// Not here: the weights themselves (weights.h, align.h), and what is read out of them (align.h, look.h).
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/tensor/tensor.h"

namespace heed::analysis {

// Words of the source and of the target by tokens, as text::words_of_tokens gives them.
struct WordMap {
  std::vector<int64_t> source, target;
};
// How many words there are.
struct WordCounts {
  int64_t source = 0, target = 0;
};

// What one word gives to each word of the source, and at the end to what is none, as the end of the sentence.
class HEED_API WordWeights {
 public:
  WordWeights(std::span<const int64_t> source_words, int64_t count)
      : words_(source_words), sums_(static_cast<size_t>(count) + 1) {}

  // One more token of the word, which gives row[s] to token s of the source.
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
