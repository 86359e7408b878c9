// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention by words, from text: a sentence and its translation in, what each word attends to out.
// Not here: attention by tokens (align.h, look.h), and translation itself (decode/translate.h).
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

// The words of a sentence and of its translation, and what each word of the translation attends to. Words are as
// text::words_and_marks cuts them; a Look has one number more, for the end of the sentence.
struct TargetExplanation {
  std::vector<std::string> source{}, target{};
  std::vector<Look> looks{};  // of each word of the target, when it was predicted
};
HEED_API TargetExplanation explain_target(nn::Pass&, const data::TextModel&, const std::string& sentence,
                                          std::span<const int32_t> translation, const AlignOptions& = {});

}  // namespace heed::analysis
