// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/align.h"

#include <algorithm>

#include "heed/analysis/weights.h"
#include "heed/base/error.h"
#include "heed/data/batch.h"

namespace heed::analysis {
namespace {

void check_index(const char* name, int64_t index, int64_t count) {
  if (index < count) return;
  throw Error(std::string("align: ") + name + " is " + std::to_string(index) + ", expected 0 to " +
              std::to_string(count - 1) + ", or -1");
}

// The number of words: one more than the highest number of a word that has a token.
int64_t count_of(const std::vector<int64_t>& words) {
  return words.empty() ? 0 : *std::max_element(words.begin(), words.end()) + 1;
}

}  // namespace

Tensor cross_weights(nn::Pass& pass, const models::Model& model, const data::Batch& batch,
                     const AlignOptions& options) {
  WeightRecorder recorder(nn::AttentionRole::cross, pass.parallel, pass.observer);
  nn::Pass watched = pass;
  watched.observer = &recorder;
  model.logits(watched, data::source_tokens(batch), data::target_tokens(batch));
  const auto& layers = recorder.layers();
  if (layers.empty()) throw Error("align: the model has no cross-attention to align by");
  check_index("layer", options.layer, std::ssize(layers));
  const Tensor all = layers[options.layer < 0 ? layers.size() - 1 : static_cast<size_t>(options.layer)].weights;
  const int64_t B = all.shape(0), H = all.shape(1), T = all.shape(2), S = all.shape(3);
  check_index("head", options.head, H);
  Tensor result = Tensor::zeros({B, T, S});
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      if (options.head >= 0 && h != options.head) continue;
      const float share = options.head >= 0 ? 1 : 1 / static_cast<float>(H);
      const float* from = all.data<float>() + (b * H + h) * T * S;
      float* to = result.data<float>() + b * T * S;
      for (int64_t i = 0; i < T * S; ++i) to[i] += share * from[i];
    }
  }
  return result;
}

text::Alignment align_words(const Tensor& weights, int64_t row, const WordMap& words) {
  const std::vector<WordWeights> seen =
      weights_by_word(weights, row, words, {count_of(words.source), count_of(words.target)});
  text::Alignment links;
  for (size_t target = 0; target < seen.size(); ++target) {
    const std::vector<double>& by_source = seen[target].sums();
    const auto end = by_source.end() - 1;  // the last number: tokens that are no word
    if (seen[target].tokens() == 0 || by_source.begin() == end) continue;
    links.push_back({std::max_element(by_source.begin(), end) - by_source.begin(), static_cast<int64_t>(target)});
  }
  std::sort(links.begin(), links.end());
  return links;
}

}  // namespace heed::analysis
