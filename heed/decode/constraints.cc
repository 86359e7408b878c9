// SPDX-License-Identifier: Apache-2.0
#include "heed/decode/constraints.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed::decode {
namespace {

Phrase phrase_of(const data::TextModel& model, const std::string& text, const char* what) {
  Phrase phrase = model.target().encode(text);
  if (phrase.empty()) throw Error(std::string(what) + " '" + text + "' has no tokens, expected one or more");
  if (std::find(phrase.begin(), phrase.end(), model.target().special().unknown) != phrase.end()) {
    throw Error(std::string(what) + " '" + text + "' has a token that " + model.name() +
                " does not know, expected known ones: it could never come");
  }
  return phrase;
}

bool contains(std::span<const int32_t> tokens, const Phrase& phrase) {
  return std::search(tokens.begin(), tokens.end(), phrase.begin(), phrase.end()) != tokens.end();
}

// The longest prefix of the phrase that is a suffix of `tokens`: how many tokens it has.
int64_t begun(std::span<const int32_t> tokens, const Phrase& phrase) {
  for (size_t n = std::min(tokens.size(), phrase.size()); n > 0; --n) {
    if (std::equal(tokens.end() - static_cast<int64_t>(n), tokens.end(), phrase.begin())) {
      return static_cast<int64_t>(n);
    }
  }
  return 0;
}

}  // namespace

Constraints constraints_of(const data::TextModel& model, const ConstraintTexts& texts) {
  Constraints all;
  if (!texts.prefix.empty()) all.prefix = phrase_of(model, texts.prefix, "the prefix");
  for (const std::string& text : texts.required) all.required.push_back(phrase_of(model, text, "the required phrase"));
  for (const std::string& text : texts.forbidden) {
    all.forbidden.push_back(phrase_of(model, text, "the forbidden phrase"));
  }
  return all;
}

Coverage coverage(std::span<const int32_t> tokens, std::span<const Phrase> required) {
  Coverage found;
  int64_t furthest = 0;
  for (const Phrase& phrase : required) {
    const int64_t size = std::ssize(phrase);
    if (contains(tokens, phrase)) {
      found.met += size;
      continue;
    }
    found.left += size;
    const int64_t now = begun(tokens, phrase);
    if (now > furthest) found.next.clear();  // others would have to begin again
    if (now >= furthest) found.next.push_back(phrase[static_cast<size_t>(now)]);
    furthest = std::max(furthest, now);
  }
  found.met += furthest;
  found.left -= furthest;
  return found;
}

bool completes(std::span<const int32_t> tokens, int32_t token, std::span<const Phrase> phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](const Phrase& phrase) {
    const size_t before = phrase.size() - 1;
    return phrase.back() == token && tokens.size() >= before &&
           std::equal(phrase.begin(), phrase.end() - 1, tokens.end() - static_cast<int64_t>(before));
  });
}

}  // namespace heed::decode
