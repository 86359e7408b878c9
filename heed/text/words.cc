#include "heed/text/words.h"

#include <algorithm>

#include "heed/text/utf8.h"

namespace heed::text {
namespace {

constexpr std::string_view kOpening = "¿";

bool is_closing(char c) { return c == '.' || c == ',' || c == '?'; }

// Adds what stands between two spaces, cut into words and marks.
void split_chunk(std::string_view chunk, std::vector<std::string>& out) {
  while (chunk.starts_with(kOpening)) {
    out.emplace_back(kOpening);
    chunk.remove_prefix(kOpening.size());
  }
  size_t end = chunk.size();
  while (end > 0 && is_closing(chunk[end - 1])) --end;
  if (end > 0) out.emplace_back(chunk.substr(0, end));
  for (const char mark : chunk.substr(end)) out.emplace_back(1, mark);
}

}  // namespace

std::vector<std::string> words_at_spaces(std::string_view text) {
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
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    split_chunk(text.substr(0, space), out);
    text.remove_prefix(std::min(space + 1, text.size()));
  }
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
