#include "heed/decode/tag.h"

#include <algorithm>
#include <string>

#include "heed/base/error.h"
#include "heed/decode/batch_tokens.h"

namespace heed::decode {
namespace {

constexpr size_t kBatch = 64;  // sentences

}  // namespace

std::vector<std::vector<int32_t>> tag(nn::Pass& pass, const models::Model& model,
                                      std::span<const std::vector<int32_t>> sentences) {
  std::vector<std::vector<int32_t>> result;
  for (size_t begin = 0; begin < sentences.size(); begin += kBatch) {
    const text::Batch batch = text::source_batch(sentences.subspan(begin, std::min(kBatch, sentences.size() - begin)));
    const Tensor logits = model.logits(pass, source_of(batch), {}).value();
    const int64_t tags = logits.shape(2);
    for (int64_t b = 0; b < batch.rows; ++b) {
      std::vector<int32_t>& best = result.emplace_back();
      for (int64_t s = 0; s + 1 < batch.source_lengths[static_cast<size_t>(b)]; ++s) {  // the end has none
        const float* row = logits.data<float>() + (b * batch.source_length + s) * tags;
        best.push_back(static_cast<int32_t>(std::max_element(row, row + tags) - row));
      }
    }
  }
  return result;
}

TagScores score_tags(nn::Pass& pass, const models::Model& model, const text::Tokenizer& words,
                     const text::Tokenizer& tags, const text::Corpus& corpus) {
  std::vector<std::vector<int32_t>> sentences, expected;
  for (const text::Pair& pair : corpus.pairs) {
    sentences.push_back(words.encode(pair.source));
    expected.push_back(tags.encode(pair.target));
    if (sentences.back().size() != expected.back().size()) {
      throw Error("line " + std::to_string(pair.line) + ": " + std::to_string(sentences.back().size()) +
                  " tokens and " + std::to_string(expected.back().size()) + " tags, expected as many");
    }
  }
  const auto found = tag(pass, model, sentences);
  TagScores scores{.sentences = std::ssize(found)};
  for (size_t i = 0; i < found.size(); ++i) {
    int64_t right = 0;
    for (size_t j = 0; j < found[i].size(); ++j) right += found[i][j] == expected[i][j];
    scores.tokens += std::ssize(found[i]);
    scores.right += right;
    scores.whole += right == std::ssize(found[i]);
  }
  return scores;
}

}  // namespace heed::decode
