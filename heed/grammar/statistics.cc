// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/statistics.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "heed/grammar/english.h"
#include "heed/grammar/syntax.h"

namespace heed::grammar {

namespace {

int first_noun(const Sentence& sentence) {
  return static_cast<int>(std::ranges::find(sentence.tags, Tag::noun) - sentence.tags.begin());
}

int noun_before(const Sentence& sentence, int position) {
  int noun = position - 1;
  while (noun >= 0 && sentence.tags[static_cast<size_t>(noun)] != Tag::noun) --noun;
  return noun;
}

// Every noun form, with the pronouns that can stand for it.
std::set<std::pair<std::string, std::string_view>> make_agreeing_pairs() {
  std::set<std::pair<std::string, std::string_view>> pairs;
  for (const Noun& noun : nouns()) {
    for (const Number number : {Number::singular, Number::plural}) {
      const NounPhrase phrase{.noun = &noun, .number = number};
      for (const Role role : {Role::subject, Role::object}) {
        pairs.emplace(english::noun_form(noun, number), english_pronoun(phrase, role));
      }
    }
  }
  return pairs;
}

int agreeing_noun_before(const Sentence& sentence, int pronoun) {
  static const auto pairs = make_agreeing_pairs();
  const std::string_view word = sentence.source[static_cast<size_t>(pronoun)];
  int noun = noun_before(sentence, pronoun);
  while (noun >= 0 && !pairs.contains({sentence.source[static_cast<size_t>(noun)], word})) {
    noun = noun_before(sentence, noun);
  }
  return noun;
}

}  // namespace

void Guesses::add(const Guesses& other) {
  pronouns += other.pronouns;
  first += other.first;
  nearest += other.nearest;
  agreeing += other.agreeing;
}

void Statistics::add(const Sentence& sentence) {
  ++sentences_;
  with_pronoun_ += !sentence.referents.empty();
  source_tokens_ += static_cast<int64_t>(sentence.source.size());
  target_tokens_ += static_cast<int64_t>(sentence.target.size());
  shortest_ = std::min(shortest_, sentence.source.size());
  longest_ = std::max(longest_, sentence.source.size());
  source_words_.insert(sentence.source.begin(), sentence.source.end());
  target_words_.insert(sentence.target.begin(), sentence.target.end());
  for (const Referent& referent : sentence.referents) {
    by_pronoun_[sentence.source[static_cast<size_t>(referent.pronoun)]].add(
        {.pronouns = 1,
         .first = referent.noun == first_noun(sentence),
         .nearest = referent.noun == noun_before(sentence, referent.pronoun),
         .agreeing = referent.noun == agreeing_noun_before(sentence, referent.pronoun)});
  }
}

Guesses Statistics::all_pronouns() const {
  Guesses all;
  for (const auto& [pronoun, guesses] : by_pronoun_) all.add(guesses);
  return all;
}

}  // namespace heed::grammar
