// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which word each token is a part of: tokens are what a model sees, words what people count.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"
#include "heed/text/tokenizer.h"

namespace heed::text {

// For each id the number of its word, from 0; -1 for ids 0 to 2, which are no text. `words` cut `text` in any way that
// keeps its characters in order: at spaces, or with marks apart. `ids` are what the tokenizer made of the text, or what
// it made the text of. A token that is a part of two words belongs to the first.
HEED_API std::vector<int64_t> words_of_tokens(const Tokenizer&, std::span<const int32_t> ids, std::string_view text,
                                              std::span<const std::string> words);

}  // namespace heed::text
