// SPDX-License-Identifier: Apache-2.0
#include "heed/text/words.h"

#include "heed/text/utf8.h"

namespace heed::text {
namespace {

constexpr std::string_view kOpening = "¿";

bool is_closing(char c) { return c == '.' || c == ',' || c == '?'; }

// Adds the marks around a word, and the word.
void split_word(std::string_view word, std::vector<std::string>& out) {
  while (word.starts_with(kOpening)) {
    out.emplace_back(kOpening);
    word.remove_prefix(kOpening.size());
  }
  size_t end = word.size();
  while (end > 0 && is_closing(word[end - 1])) --end;
  if (end > 0) out.emplace_back(word.substr(0, end));
  for (const char mark : word.substr(end)) out.emplace_back(1, mark);
}

}  // namespace

std::vector<std::string> words_at_spaces(std::string_view text) {
  check_utf8(text, "text");
  std::vector<std::string> words;
  bool space = true;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    if (is_space(next_character(text, position))) {
      space = true;
      continue;
    }
    if (space) words.emplace_back();
    words.back() += text.substr(begin, position - begin);
    space = false;
  }
  return words;
}

std::vector<std::string> words_and_marks(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string& word : words_at_spaces(text)) split_word(word, out);
  return out;
}

std::string detokenise(const std::vector<std::string>& words_and_marks) {
  std::string text;
  bool glue = true;  // to what came before
  for (const std::string& one : words_and_marks) {
    if (!glue && !is_closing(one.front())) text += ' ';
    text += one;
    glue = one == kOpening;
  }
  return text;
}

}  // namespace heed::text
