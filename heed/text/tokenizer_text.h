// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tokenizers share: text as all of them see it. Not for users of tokenizer.h.
#include <cstdint>
#include <string>
#include <string_view>

#include "heed/base/error.h"
#include "heed/text/utf8.h"

namespace heed::text {

// Stands for the space before a word, as in SentencePiece.
inline constexpr std::string_view kBlock = "\u2581";
inline constexpr char32_t kBlockCharacter = U'\u2581';

// Valid UTF-8 with single spaces, small letters if that is wanted.
inline std::string prepared(std::string_view text, bool lowercase) {
  check_utf8(text, "text");
  const std::string squeezed = squeeze_spaces(text);
  return lowercase ? to_lower(std::string_view(squeezed)) : squeezed;
}

inline void check_id(int32_t id, int64_t size) {
  if (id >= 0 && id < size) return;
  throw Error("tokenizer: id is " + std::to_string(id) + ", expected 0 to " + std::to_string(size - 1));
}

}  // namespace heed::text
