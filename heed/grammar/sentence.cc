// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/sentence.h"

#include <array>

namespace heed::grammar {

namespace {

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
