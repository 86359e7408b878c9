// SPDX-License-Identifier: Apache-2.0
#pragma once
// The words of a text, as people count them.
// Not here: what a model sees of it (tokenizer.h), and which word each token is a part of (token_words.h).
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"

namespace heed::text {

// What stands between spaces, of any kind. Throws Error for text that is no UTF-8.
HEED_API std::vector<std::string> words_at_spaces(std::string_view text);

// The same, with . , ? ¿ apart from words, each for itself; and back.
HEED_API std::vector<std::string> words_and_marks(std::string_view text);
HEED_API std::string detokenise(const std::vector<std::string>& words_and_marks);

}  // namespace heed::text
