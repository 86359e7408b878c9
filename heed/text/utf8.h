// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text as UTF-8: is it valid, which characters are in it, and which of them are spaces or capitals.
#include <cstddef>
#include <string>
#include <string_view>

#include "heed/base/export.h"

namespace heed::text {

// Where the first byte stands that belongs to no valid character, or npos. Overlong forms, surrogates and what lies
// beyond U+10FFFF are not valid.
HEED_API size_t find_invalid_utf8(std::string_view text);
// Throws: "source: byte 3 is 0xe9, which is no UTF-8". Bytes count from 1.
HEED_API void check_utf8(std::string_view text, const std::string& name);

// The character that begins at `position` of valid text; moves the position to the next one.
HEED_API char32_t next_character(std::string_view text, size_t& position);
// All of them; throws if the text is not valid.
HEED_API std::u32string characters_of(std::string_view text);
HEED_API void append_utf8(std::string& text, char32_t character);

// White space as Unicode has it, and U+001C to U+001F: what Python's str.split() splits at.
HEED_API bool is_space(char32_t character);
// Valid text without space at its ends, and with one plain space for each run of it inside.
HEED_API std::string squeeze_spaces(std::string_view text);

// Small letters for capitals in ASCII, Latin-1, Latin Extended-A, Greek as it is written today, and Cyrillic; other
// characters stay. One character becomes one: U+0130 (capital I with a dot) becomes i, capital sigma never a final one.
HEED_API char32_t to_lower(char32_t character);
HEED_API std::string to_lower(std::string_view text);  // of valid text

}  // namespace heed::text
