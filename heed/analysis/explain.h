#pragma once
// What words look at, from text to words: a sentence and its translation in, attention by words out.
// Not here: what it is gathered from (look.h, align.h), and the translating (decode/translate.h).
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/analysis/align.h"
#include "heed/analysis/look.h"
#include "heed/base/export.h"
#include "heed/data/text_model.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// Words are as text::words_and_marks cuts them; a Look has one number more, for the end of the sentence.
struct SourceExplanation {
  std::vector<std::string> words{};
  std::vector<HeadLook> heads{};  // what the word looks at in every head of the encoder
};
// Of the first word of the sentence that is `word`, in whatever case. Throws Error where there is none, or the model's
// encoder has no attention.
HEED_API SourceExplanation explain_source(nn::Pass&, const data::TextModel&, const std::string& sentence,
                                          const std::string& word);

struct TargetExplanation {
  std::vector<std::string> source{}, target{};
  std::vector<Look> looks{};  // of each word of the target, while it was chosen
};
HEED_API TargetExplanation explain_target(nn::Pass&, const data::TextModel&, const std::string& sentence,
                                          std::span<const int32_t> translation, const AlignOptions& = {});

}  // namespace heed::analysis
