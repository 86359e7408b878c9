// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/look.h"

#include <algorithm>

#include "heed/analysis/weights.h"
#include "heed/base/error.h"
#include "heed/data/batch.h"

namespace heed::analysis {

std::vector<HeadLook> source_looks(nn::Pass& pass, const models::Model& model, std::span<const int32_t> source,
                                   std::span<const int64_t> words, int64_t count, int64_t word) {
  const std::vector<std::vector<int32_t>> sources = {{source.begin(), source.end()}};
  const data::Batch batch = data::source_batch(sources);
  WeightRecorder recorder(nn::AttentionRole::self, pass.parallel, pass.observer);
  nn::Pass watched = pass;
  watched.observer = &recorder;
  model.begin(watched, data::source_tokens(batch));
  if (recorder.layers().empty()) throw Error("the model's encoder has no attention to look at");
  std::vector<HeadLook> looks;
  for (const WeightRecorder::Layer& layer : recorder.layers()) {
    const int64_t H = layer.weights.shape(1), T = layer.weights.shape(2), S = layer.weights.shape(3);
    for (int64_t h = 0; h < H; ++h) {
      WordWeights gathered(words, count);
      for (int64_t t = 0; t < std::min(T, std::ssize(words)); ++t) {
        if (words[static_cast<size_t>(t)] != word) continue;
        gathered.add({layer.weights.data<float>() + (h * T + t) * S, static_cast<size_t>(S)});
      }
      looks.push_back({layer.path, h, gathered.mean()});
    }
  }
  return looks;
}

std::vector<Look> target_looks(const Tensor& cross_weights, const WordMap& words, const WordCounts& counts) {
  std::vector<Look> looks;
  for (const WordWeights& one : weights_by_word(cross_weights, 0, words, counts)) looks.push_back(one.mean());
  return looks;
}

}  // namespace heed::analysis
