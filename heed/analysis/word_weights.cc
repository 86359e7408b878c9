// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/word_weights.h"

#include <algorithm>

namespace heed::analysis {

void WordWeights::add(std::span<const float> row) {
  ++tokens_;
  for (size_t s = 0; s < row.size(); ++s) {
    const int64_t word = s < words_.size() ? words_[s] : -1;
    (word < 0 ? sums_.back() : sums_[static_cast<size_t>(word)]) += double{row[s]};
  }
}

std::vector<double> WordWeights::mean() const {
  std::vector<double> mean = sums_;
  for (double& x : mean) x /= static_cast<double>(std::max<int64_t>(1, tokens_));
  return mean;
}

std::vector<WordWeights> weights_by_word(const Tensor& weights, int64_t row, const WordMap& words,
                                         const WordCounts& counts) {
  const int64_t T = weights.shape(1), S = weights.shape(2);
  std::vector<WordWeights> gathered(static_cast<size_t>(counts.target), WordWeights(words.source, counts.source));
  for (int64_t t = 0; t < std::min(T, std::ssize(words.target)); ++t) {
    const int64_t word = words.target[static_cast<size_t>(t)];
    if (word < 0) continue;
    gathered[static_cast<size_t>(word)].add({weights.data<float>() + (row * T + t) * S, static_cast<size_t>(S)});
  }
  return gathered;
}

}  // namespace heed::analysis
