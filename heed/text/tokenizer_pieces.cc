// SPDX-License-Identifier: Apache-2.0
#include "heed/text/tokenizer_pieces.h"

#include <algorithm>

#include "heed/text/tokenizer_text.h"

namespace heed::text {
namespace {

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

bool is_punctuation(char32_t c) {
  constexpr std::u32string_view kLatin1 = U"¡¢£¤¥¦§¨©«¬®¯°±´¶·¸»¿×÷";
  if (c < 0x80) return c > ' ' && c < 0x7F && !is_digit(c) && (c < 'A' || (c > 'Z' && c < 'a') || c > 'z');
  if (c < 0x100) return kLatin1.find(c) != kLatin1.npos;
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return c == 0x2581 || within(0x2010, 0x2027) || within(0x2030, 0x205E) ||  // dashes, quotes, dots
         within(0x20A0, 0x20CF) || within(0x2190, 0x22FF) ||                 // currencies, arrows, mathematics
         within(0x2E00, 0x2E7F) || within(0x3001, 0x3003) || within(0x3008, 0x3011) || within(0xFF01, 0xFF0F) ||
         within(0xFF1A, 0xFF20);
}

bool is_word(char32_t c) { return !is_space(c) && !is_punctuation(c); }

// Punctuation that does not split a word, by what stands around it.
bool joins(char32_t before, char32_t c, char32_t after) {
  if (c == '\'' || c == 0x2019 || c == '-') return is_word(before) && is_word(after);
  if (c == '.' || c == ',') return is_digit(before) && is_digit(after);
  return false;
}

}  // namespace

std::vector<std::string> split_words(std::string_view text) {
  const std::u32string characters = characters_of(text);
  std::vector<std::string> pieces;
  bool space = true, in_word = false;  // as if a space stood before the text
  for (size_t i = 0; i < characters.size(); ++i) {
    const char32_t c = characters[i];
    if (is_space(c)) {
      space = true, in_word = false;
      continue;
    }
    const char32_t before = i > 0 ? characters[i - 1] : U' ',
                   after = i + 1 < characters.size() ? characters[i + 1] : U' ';
    const bool word = is_word(c) || joins(before, c, after);
    if (!word || !in_word) pieces.emplace_back(space ? kBlock : "");
    append_utf8(pieces.back(), c);
    space = false, in_word = word;
  }
  return pieces;
}

std::string join_words(std::span<const std::string_view> pieces) {
  std::string text;
  for (const std::string_view piece : pieces) {
    const bool space = piece.starts_with(kBlock) && piece.size() > kBlock.size();
    if (space && !text.empty()) text += ' ';
    text += piece.substr(space ? kBlock.size() : 0);
  }
  return text;
}

std::vector<std::string> split_characters(std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = next_character(text, position);
    const std::string_view spelling = text.substr(begin, position - begin);
    pieces.emplace_back(is_space(c) ? kBlock : spelling);
    if (spelling == kBlock) pieces.back() += kBlock;
  }
  return pieces;
}

std::string join_characters(std::span<const std::string_view> pieces) {
  std::string text;
  for (const std::string_view piece : pieces) {
    const bool space = piece == kBlock, block = piece.starts_with(kBlock);
    text += space ? " " : block ? kBlock : piece;
  }
  return squeeze_spaces(text);
}

}  // namespace heed::text
