#pragma once
// A tag for each token of a sentence, by a model whose task that is.
#include <cstdint>
#include <span>
#include <vector>

#include "heed/models/model.h"
#include "heed/text/corpus.h"
#include "heed/text/tokenizer.h"

namespace heed::decode {

// The likeliest tags of each sentence, as many as it has tokens. Sentences are as encode() gives them, none of them
// empty.
std::vector<std::vector<int32_t>> tag(nn::Pass&, const models::Model&, std::span<const std::vector<int32_t>> sentences);

struct TagScores {
  int64_t sentences = 0, tokens = 0, right = 0, whole = 0;  // whole: sentences without a wrong tag
};
// Against the targets of a corpus. Throws Error, with the line, where a sentence has more or fewer tags than tokens.
TagScores score_tags(nn::Pass&, const models::Model&, const text::Tokenizer& words, const text::Tokenizer& tags,
                     const text::Corpus&);

}  // namespace heed::decode
