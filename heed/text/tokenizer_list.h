// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tokenizers that are a list of pieces and nothing more: words and characters. Not for users of tokenizer.h.
//
// The file is text: "heed tokenizer words 1", "lowercase no", "pieces N", and then N lines, one piece each, in the
// order of their ids.
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "heed/text/tokenizer.h"

namespace heed::text {

inline constexpr std::string_view kListTokenizer = "heed tokenizer ";  // how the file begins

// The most frequent pieces of the lines; of two that are as frequent, the one whose bytes come first.
std::unique_ptr<Tokenizer> train_list_tokenizer(std::span<const std::string> lines, const TokenizerOptions&);
// `name` is what messages call the file.
std::unique_ptr<Tokenizer> parse_list_tokenizer(std::string_view file, const std::string& name);

}  // namespace heed::text
