// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/look.h"

namespace heed::analysis {

std::vector<Look> target_looks(const Tensor& cross_weights, const WordMap& words, const WordCounts& counts) {
  std::vector<Look> looks;
  for (const WordWeights& one : weights_by_word(cross_weights, 0, words, counts)) looks.push_back(one.mean());
  return looks;
}

}  // namespace heed::analysis
