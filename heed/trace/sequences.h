// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens with their texts, their places in the text and their words. Internal.
#include <cstdint>
#include <span>
#include <string>

#include "heed/text/tokenizer.h"
#include "heed/trace/trace.h"

namespace heed::trace {

// A text that was given: `ids` are its tokens, with specials before or after them.
Sequence given_sequence(const text::Tokenizer&, std::span<const int32_t> ids, const std::string& text);
// Ids that a model said: their text is what the tokenizer makes of them. `given` is the text that they begin with.
Sequence said_sequence(const text::Tokenizer&, std::span<const int32_t> ids, const std::string& given = "");

}  // namespace heed::trace
