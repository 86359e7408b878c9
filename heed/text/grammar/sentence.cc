#include "heed/text/grammar/sentence.h"

#include <algorithm>
#include <array>

namespace heed::grammar {

namespace {

constexpr std::string_view kOpening = "¿";

bool is_closing(char c) { return c == '.' || c == ',' || c == '?'; }

// Adds the tokens of what stands between two spaces.
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

template <typename Item, typename Text>
std::string joined(const std::vector<Item>& items, Text&& text) {
  std::string line;
  for (const Item& item : items) {
    if (!line.empty()) line += ' ';
    line += text(item);
  }
  return line;
}

}  // namespace

std::string_view name(Tag tag) {
  constexpr std::array<std::string_view, 13> kNames{"ADJ", "ADP",  "ADV",  "AUX",   "CCONJ", "DET", "NOUN",
                                                    "NUM", "PART", "PRON", "PUNCT", "SCONJ", "VERB"};
  return kNames[static_cast<size_t>(tag)];
}

std::vector<std::string> tokens(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    split_chunk(text.substr(0, space), out);
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

std::string detokenise(const std::vector<std::string>& tokens) {
  std::string text;
  bool glue = true;  // to what came before
  for (const std::string& token : tokens) {
    if (!glue && !is_closing(token.front())) text += ' ';
    text += token;
    glue = token == kOpening;
  }
  return text;
}

std::string join(const std::vector<std::string>& words) {
  return joined(words, [](const std::string& word) { return word; });
}

std::string pharaoh(const std::vector<Link>& alignment) {
  return joined(alignment, [](const Link& link) {
    const char* mark = link.certainty == Certainty::sure ? "-" : "p";
    return std::to_string(link.source) + mark + std::to_string(link.target);
  });
}

std::string to_string(const std::vector<Referent>& referents) {
  return joined(referents, [](const Referent& r) { return std::to_string(r.pronoun) + "-" + std::to_string(r.noun); });
}

std::string to_string(const std::vector<Tag>& tags) {
  return joined(tags, [](Tag tag) { return name(tag); });
}

}  // namespace heed::grammar
