// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/reading.h"

#include <algorithm>
#include <utility>

#include "heed/base/error.h"
#include "heed/text/token_words.h"
#include "heed/text/utf8.h"
#include "heed/text/words.h"

namespace heed::analysis {
namespace {

using models::Task;
using nn::TextSide;

bool same_word(const std::string& a, const std::string& b) {
  return text::to_lower(std::string_view(a)) == text::to_lower(std::string_view(b));
}

std::optional<size_t> place_of(const std::vector<std::string>& words, const std::string& word) {
  const auto at = std::find_if(words.begin(), words.end(), [&](const std::string& w) { return same_word(w, word); });
  if (at == words.end()) return {};
  return static_cast<size_t>(at - words.begin());
}

std::vector<int64_t> positions_of(const std::vector<int64_t>& map, size_t word) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < map.size(); ++i) {
    if (map[i] == static_cast<int64_t>(word)) positions.push_back(static_cast<int64_t>(i));
  }
  return positions;
}

std::vector<int32_t> tokens_of(const data::TextModel& model, const std::string& text) {
  std::vector<int32_t> ids = model.encode(text);
  if (ids.empty()) throw Error("the sentence '" + text + "' has no word in it, expected at least one");
  return ids;
}

size_t common_beginning(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

Reading::Reading(const data::TextModel& model, const std::string& text, std::vector<int32_t> output) : model_(model) {
  std::vector<int32_t> ids = tokens_of(model, text);
  if (model.task() == Task::language) {
    first_output_ = std::ssize(ids);
    ids.insert(ids.end(), output.begin(), output.end());
    pair_.target = std::move(ids);
  } else {
    pair_ = {std::move(ids), std::move(output)};
    source_ = text::words_and_marks(text);
    source_map_ = text::words_of_tokens(model.source(), pair_.source, text, source_);
  }
  if (model.task() == Task::tag) return;
  said_ = model.target().decode(pair_.target);
  target_ = text::words_and_marks(said_);
  target_map_ = text::words_of_tokens(model.target(), pair_.target, said_, target_);
}

const std::vector<std::string>& Reading::words(TextSide side) const {
  return side == TextSide::source ? source_ : target_;
}

const std::vector<int64_t>& Reading::map(TextSide side) const {
  return side == TextSide::source ? source_map_ : target_map_;
}

data::TokenPair Reading::with_text(const std::string& other) const {
  std::vector<int32_t> ids = tokens_of(model_, other);
  if (model_.task() != Task::language) return {std::move(ids), pair_.target};
  ids.insert(ids.end(), pair_.target.begin() + first_output_, pair_.target.end());
  return {{}, std::move(ids)};
}

WordPlace Reading::find(const std::string& word) const {
  for (const TextSide side : {TextSide::source, TextSide::target}) {
    if (const auto at = place_of(words(side), word)) return {side, *at};
  }
  throw Error("the word is '" + word + "', expected a word of the sentence" +
              (source_.empty() || target_.empty() ? "" : " or of its translation"));
}

Queries Reading::queries(const WordPlace& place) const {
  std::vector<int64_t> positions = positions_of(map(place.side), place.word);
  if (place.side == TextSide::source) return {.source = std::move(positions)};
  // Token t of the target is read at t + 1, after <s>.
  for (int64_t& position : positions) position += model_.task() == Task::language ? 1 : 0;
  return {.target = std::move(positions)};
}

std::vector<std::vector<int64_t>> Reading::tokens_of_words() const {
  const TextSide side = model_.task() == Task::language ? TextSide::target : TextSide::source;
  std::vector<std::vector<int64_t>> all;
  all.reserve(words(side).size());
  for (size_t word = 0; word < words(side).size(); ++word) all.push_back(positions_of(map(side), word));
  return all;
}

ByWord Reading::by_word(TextSide side, std::span<const double> tokens) const {
  ByWord result{std::vector<double>(words(side).size())};
  const int64_t first = side == TextSide::target ? 1 : 0;  // <s> comes before the target's
  for (int64_t i = 0; i < std::ssize(tokens); ++i) {
    const int64_t at = i - first;
    const int64_t word = at >= 0 && at < std::ssize(map(side)) ? map(side)[static_cast<size_t>(at)] : -1;
    (word < 0 ? result.rest : result.words[static_cast<size_t>(word)]) += tokens[static_cast<size_t>(i)];
  }
  return result;
}

size_t Reading::output_word(const std::string& word) const {
  const std::vector<std::string>& all = words(model_.task() == Task::tag ? TextSide::source : TextSide::target);
  if (const auto at = place_of(all, word)) return *at;
  throw Error("the word is '" + word + "', expected a word of the " +
              (model_.task() == Task::tag ? "sentence" : "output '" + said_ + "'"));
}

Target Reading::target_of(const std::optional<std::string>& of) const {
  if (of) {
    const std::vector<int64_t>& tokens = model_.task() == Task::tag ? source_map_ : target_map_;
    const std::vector<int64_t> positions = positions_of(tokens, output_word(*of));
    if (positions.empty()) throw Error("the word '" + *of + "' has no token of its own, expected another word");
    return {.position = positions.front()};
  }
  if (model_.task() != Task::language) return {};
  return {.position = first_output_};
}

Target Reading::contrast(const std::optional<std::string>& of, const std::string& against) const {
  if (model_.task() == Task::tag) {
    if (!of) throw Error("another tag came without a word, expected the word whose tag it is");
    Target target = target_of(of);
    const std::vector<int32_t> tag = model_.target().encode(against);
    if (tag.size() != 1 || tag[0] == model_.target().special().unknown) {
      throw Error("the tag is '" + against + "', expected a tag that the model knows");
    }
    target.against = tag[0];
    return target;
  }
  size_t word = 0;
  if (of) {
    word = output_word(*of);
  } else {
    for (size_t i = 0; i < target_.size(); ++i) {
      if (common_beginning(target_[i], against) > common_beginning(target_[word], against)) word = i;
    }
    if (target_.empty() || common_beginning(target_[word], against) == 0) {
      throw Error("no word of the output '" + said_ + "' is like '" + against +
                  "', expected the word that it replaces");
    }
  }
  std::vector<std::string> other = target_;
  other[word] = against;
  const std::vector<int32_t> ids = model_.target().encode(text::detokenise(other));
  const auto [mine, its] = std::mismatch(pair_.target.begin(), pair_.target.end(), ids.begin(), ids.end());
  if (mine == pair_.target.end() || its == ids.end()) {
    throw Error("'" + against + "' in the place of '" + target_[word] +
                "' gives the same tokens, expected another word");
  }
  if (*its == model_.target().special().unknown) {
    throw Error("the word is '" + against + "', expected one that the model knows");
  }
  const int64_t position = mine - pair_.target.begin();
  if (target_map_[static_cast<size_t>(position)] != static_cast<int64_t>(word)) {
    throw Error("with '" + against + "' in the place of '" + target_[word] +
                "' the tokens before it are others, too, expected a word that changes only what follows");
  }
  return {.position = position, .token = *mine, .against = *its};
}

Question Reading::question(const std::optional<std::string>& of, const std::optional<std::string>& against) const {
  return Question(model_.model(), pair_, against ? contrast(of, *against) : target_of(of), model_.special());
}

}  // namespace heed::analysis
