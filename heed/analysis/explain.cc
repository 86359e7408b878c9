// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/explain.h"

#include "heed/base/error.h"
#include "heed/data/batch.h"
#include "heed/text/token_words.h"
#include "heed/text/words.h"

namespace heed::analysis {
namespace {

std::vector<int32_t> encode(const data::TextModel& model, const std::string& sentence) {
  std::vector<int32_t> ids = model.encode(sentence);
  if (ids.empty()) throw Error("the sentence '" + sentence + "' has no word in it, expected at least one");
  return ids;
}

}  // namespace

TargetExplanation explain_target(nn::Pass& pass, const data::TextModel& model, const std::string& sentence,
                                 std::span<const int32_t> translation, const AlignOptions& options) {
  const std::vector<data::TokenPair> pair = {{encode(model, sentence), {translation.begin(), translation.end()}}};
  const std::string said = model.target().decode(translation);
  TargetExplanation result{.source = text::words_and_marks(sentence), .target = text::words_and_marks(said)};
  const WordMap words{text::words_of_tokens(model.source(), pair[0].source, sentence, result.source),
                      text::words_of_tokens(model.target(), translation, said, result.target)};
  const data::Batch batch = data::pair_batch(pair, std::vector<size_t>{0}, model.special());
  result.looks = target_looks(cross_weights(pass, model.model(), batch, options), words,
                              {std::ssize(result.source), std::ssize(result.target)});
  return result;
}

}  // namespace heed::analysis
