#include "heed/decode/look.h"

#include "heed/base/error.h"
#include "heed/decode/batch_tokens.h"
#include "heed/decode/weights.h"

namespace heed::decode {
namespace {

// Rows [S] of the tokens that make up a word, gathered by words of the source.
class Gathered {
 public:
  Gathered(std::span<const int64_t> source_words, int64_t count)
      : words_(source_words), look_(static_cast<size_t>(count) + 1) {}

  void add(const float* row, int64_t S) {
    ++rows_;
    for (int64_t s = 0; s < S; ++s) {
      const int64_t word = s < std::ssize(words_) ? words_[static_cast<size_t>(s)] : -1;
      (word < 0 ? look_.back() : look_[static_cast<size_t>(word)]) += double{row[s]};
    }
  }
  Look mean() const {
    Look mean = look_;
    for (double& x : mean) x /= static_cast<double>(std::max<int64_t>(1, rows_));
    return mean;
  }

 private:
  std::span<const int64_t> words_;
  Look look_;
  int64_t rows_ = 0;
};

}  // namespace

std::vector<HeadLook> source_looks(nn::Pass& pass, const models::Model& model, std::span<const int32_t> source,
                                   std::span<const int64_t> words, int64_t count, int64_t word) {
  const std::vector<std::vector<int32_t>> sources = {{source.begin(), source.end()}};
  const text::Batch batch = text::source_batch(sources);
  WeightRecorder recorder(nn::AttentionRole::self, pass.parallel, pass.observer);
  nn::Pass watched = pass;
  watched.observer = &recorder;
  model.begin(watched, source_of(batch));
  if (recorder.layers().empty()) throw Error("the model's encoder has no attention to look at");
  std::vector<HeadLook> looks;
  for (const WeightRecorder::Layer& layer : recorder.layers()) {
    const int64_t H = layer.weights.shape(1), T = layer.weights.shape(2), S = layer.weights.shape(3);
    for (int64_t h = 0; h < H; ++h) {
      Gathered gathered(words, count);
      for (int64_t t = 0; t < std::min(T, std::ssize(words)); ++t) {
        if (words[static_cast<size_t>(t)] == word) gathered.add(layer.weights.data<float>() + (h * T + t) * S, S);
      }
      looks.push_back({layer.path, h, gathered.mean()});
    }
  }
  return looks;
}

std::vector<Look> target_looks(const Tensor& cross_weights, const WordMap& words, const WordCounts& counts) {
  const int64_t T = cross_weights.shape(1), S = cross_weights.shape(2);
  std::vector<Gathered> gathered(static_cast<size_t>(counts.target), Gathered(words.source, counts.source));
  for (int64_t t = 0; t < std::min(T, std::ssize(words.target)); ++t) {
    const int64_t word = words.target[static_cast<size_t>(t)];
    if (word >= 0) gathered[static_cast<size_t>(word)].add(cross_weights.data<float>() + t * S, S);
  }
  std::vector<Look> looks;
  looks.reserve(gathered.size());
  for (const Gathered& one : gathered) looks.push_back(one.mean());
  return looks;
}

}  // namespace heed::decode
