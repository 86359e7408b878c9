// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/sequences.h"

#include <algorithm>
#include <vector>

#include "heed/text/token_words.h"
#include "heed/text/tokenizer_text.h"
#include "heed/text/utf8.h"
#include "heed/text/words.h"

namespace heed::trace {
namespace {

bool is_special(const text::Tokenizer& tokenizer, int32_t id) {
  const text::SpecialTokens special = tokenizer.special();
  return id == special.pad || id == special.begin || id == special.end;
}

// Looks for the tokens' texts one after the other: what stands between them is space, unless the one before was not
// found.
void find_places(Sequence& sequence) {
  size_t at = 0;
  bool lost = false;
  for (Token& token : sequence.tokens) {
    if (token.special || token.text.empty()) continue;
    const size_t found = sequence.text.find(token.text, at);
    const bool near = found != std::string::npos &&
                      (lost || text::squeeze_spaces(std::string_view(sequence.text).substr(at, found - at)).empty());
    lost = !near;
    if (!near) continue;
    at = found + token.text.size();
    token.start = static_cast<int64_t>(found), token.end = static_cast<int64_t>(at);
  }
}

Sequence sequence_of(const text::Tokenizer& tokenizer, std::span<const int32_t> ids, const std::string& text,
                     std::span<const std::string> surfaces) {
  Sequence sequence{.text = text};
  size_t next = 0;
  for (const int32_t id : ids) {
    Token& token = sequence.tokens.emplace_back();
    token.id = id;
    token.piece = tokenizer.piece(id);
    token.special = is_special(tokenizer, id);
    if (token.special) continue;
    token.text = next < surfaces.size() ? surfaces[next] : token.piece;
    if (next++ >= surfaces.size() && token.text.starts_with(text::kBlock)) token.text.erase(0, text::kBlock.size());
  }
  find_places(sequence);
  const auto words = text::words_of_tokens(tokenizer, ids, text, text::words_and_marks(text));
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] >= 0 && !sequence.tokens[i].special) sequence.tokens[i].word = words[i];
  }
  return sequence;
}

}  // namespace

Sequence given_sequence(const text::Tokenizer& tokenizer, std::span<const int32_t> ids, const std::string& text) {
  return sequence_of(tokenizer, ids, text, tokenizer.surface(text));
}

Sequence said_sequence(const text::Tokenizer& tokenizer, std::span<const int32_t> ids, const std::string& given) {
  return sequence_of(tokenizer, ids, tokenizer.decode(ids), tokenizer.surface(given));
}

}  // namespace heed::trace
