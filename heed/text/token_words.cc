// SPDX-License-Identifier: Apache-2.0
#include "heed/text/token_words.h"

#include <algorithm>

#include "heed/base/error.h"
#include "heed/text/tokenizer_text.h"

namespace heed::text {
namespace {

struct Character {
  char32_t value;  // in small letters, so that a tokenizer that has no others finds its place
  bool after_space;
  int64_t word;
};

std::vector<Character> characters_by_word(std::string_view text, std::span<const std::string> words) {
  std::u32string joined;
  std::vector<int64_t> owners;
  for (size_t i = 0; i < words.size(); ++i) {
    for (const char32_t c : characters_of(words[i])) {
      joined += c;
      owners.push_back(static_cast<int64_t>(i));
    }
  }
  std::vector<Character> characters;
  bool space = true;
  for (const char32_t c : characters_of(text)) {
    if (is_space(c)) {
      space = true;
      continue;
    }
    const size_t at = characters.size();
    if (at >= joined.size() || joined[at] != c) throw Error("words: they are not those of the text");
    characters.push_back({to_lower(c), space, owners[at]});
    space = false;
  }
  if (characters.size() != joined.size()) throw Error("words: they are not those of the text");
  return characters;
}

// A piece as it is looked for: without the mark for a space.
struct Wanted {
  std::u32string characters;
  bool after_space = false;
};

Wanted wanted(const Tokenizer& tokenizer, int32_t id) {
  const std::string piece = tokenizer.piece(id);
  const bool block = piece.starts_with(kBlock);
  Wanted result{{}, block};
  for (const char32_t c : characters_of(std::string_view(piece).substr(block ? kBlock.size() : 0))) {
    result.characters += to_lower(c);
  }
  return result;
}

class Places {
 public:
  explicit Places(std::vector<Character> characters) : characters_(std::move(characters)) {}

  int64_t word() const {
    if (characters_.empty()) return -1;
    return characters_[std::min(at_, characters_.size() - 1)].word;
  }
  void pass(size_t count) { at_ = std::min(at_ + count, characters_.size()); }
  void pass_to_space() {
    while (at_ < characters_.size() && !characters_[at_].after_space) ++at_;
  }
  // Goes to where the piece stands, if it stands anywhere from here on.
  void seek(const Wanted& piece) {
    for (size_t i = at_; i < characters_.size(); ++i) {
      if (stands_at(i, piece)) {
        at_ = i;
        return;
      }
    }
  }

 private:
  bool stands_at(size_t i, const Wanted& piece) const {
    if (piece.after_space && !characters_[i].after_space) return false;
    if (i + piece.characters.size() > characters_.size()) return false;
    return std::equal(piece.characters.begin(), piece.characters.end(), characters_.begin() + static_cast<int64_t>(i),
                      [](char32_t c, const Character& there) { return c == there.value; });
  }

  const std::vector<Character> characters_;
  size_t at_ = 0;
};

}  // namespace

std::vector<int64_t> words_of_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids, std::string_view text,
                                     std::span<const std::string> words) {
  check_utf8(text, "text");
  Places places(characters_by_word(text, words));
  std::vector<int64_t> result;
  int32_t before = kPad;
  for (const int32_t id : ids) {
    if (id < kUnknown) {
      result.push_back(-1);
    } else if (id == kUnknown) {  // of unknown length: where the next piece is found shows it
      if (before == kUnknown && tokenizer.kind() == TokenizerKind::words) places.pass_to_space();
      result.push_back(places.word());
      places.pass(1);
    } else {
      const Wanted piece = wanted(tokenizer, id);
      places.seek(piece);
      result.push_back(places.word());
      places.pass(piece.characters.size());
    }
    before = id;
  }
  return result;
}

}  // namespace heed::text
