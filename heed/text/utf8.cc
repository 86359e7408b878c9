// SPDX-License-Identifier: Apache-2.0
#include "heed/text/utf8.h"

#include <cassert>
#include <cstdint>

#include "heed/base/error.h"

namespace heed::text {
namespace {

// The length in bytes of the character at `position`, or 0 if no valid one begins there.
size_t decode(std::string_view text, size_t position, char32_t& character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char first = byte(0);
  character = first;
  if (first < 0x80) return 1;
  const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() - position < length) return 0;
  character = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  return character < kSmallest[length] || surrogate || character > 0x10FFFF ? 0 : length;
}

// Capitals first, first + step, ..., last; the small letter stands `offset` further.
struct Capitals {
  char32_t first, last;
  int32_t offset;
  char32_t step = 1;
};

constexpr Capitals kCapitals[] = {
    {'A', 'Z', 32},
    {0xC0, 0xD6, 32},  // Latin-1, without the multiplication sign
    {0xD8, 0xDE, 32},
    {0x100, 0x12E, 1, 2},  // Latin Extended-A
    {0x130, 0x130, 'i' - 0x130},
    {0x132, 0x136, 1, 2},
    {0x139, 0x147, 1, 2},
    {0x14A, 0x176, 1, 2},
    {0x178, 0x178, 0xFF - 0x178},
    {0x179, 0x17D, 1, 2},
    {0x386, 0x386, 38},  // Greek
    {0x388, 0x38A, 37},
    {0x38C, 0x38C, 64},
    {0x38E, 0x38F, 63},
    {0x391, 0x3A1, 32},
    {0x3A3, 0x3AB, 32},
    {0x400, 0x40F, 80},  // Cyrillic
    {0x410, 0x42F, 32},
    {0x460, 0x480, 1, 2},
    {0x48A, 0x4BE, 1, 2},
    {0x4C0, 0x4C0, 15},
    {0x4C1, 0x4CD, 1, 2},
    {0x4D0, 0x52E, 1, 2},
};

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  for (size_t position = 0; position < text.size();) {
    char32_t character = 0;
    const size_t length = decode(text, position, character);
    if (length == 0) return position;
    position += length;
  }
  return std::string_view::npos;
}

void check_utf8(std::string_view text, const std::string& name) {
  const size_t position = find_invalid_utf8(text);
  if (position == std::string_view::npos) return;
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(text[position]);
  throw Error(name + ": byte " + std::to_string(position + 1) + " is 0x" + kHex[byte >> 4] + kHex[byte & 15] +
              ", which is no UTF-8");
}

char32_t next_character(std::string_view text, size_t& position) {
  char32_t character = 0;
  const size_t length = decode(text, position, character);
  assert(length > 0);
  position += length;
  return character;
}

std::u32string characters_of(std::string_view text) {
  check_utf8(text, "text");
  std::u32string characters;
  characters.reserve(text.size());
  for (size_t position = 0; position < text.size();) characters += next_character(text, position);
  return characters;
}

void append_utf8(std::string& text, char32_t character) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0 | character >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xF0 | character >> 18);
    tail(12), tail(6), tail(0);
  }
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string squeeze_spaces(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool space = false;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    if (is_space(next_character(text, position))) {
      space = true;
      continue;
    }
    if (space && !result.empty()) result += ' ';
    space = false;
    result += text.substr(begin, position - begin);
  }
  return result;
}

char32_t to_lower(char32_t character) {
  for (const Capitals& capitals : kCapitals) {
    if (character < capitals.first) break;
    if (character <= capitals.last && (character - capitals.first) % capitals.step == 0) {
      return character + capitals.offset;
    }
  }
  return character;
}

std::string to_lower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t position = 0; position < text.size();) append_utf8(result, to_lower(next_character(text, position)));
  return result;
}

}  // namespace heed::text
