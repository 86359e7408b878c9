// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/english.h"

namespace heed::grammar::english {

namespace {

bool is_vowel(char c) { return std::string_view("aeiou").find(c) != std::string_view::npos; }

bool ends_in_consonant_y(std::string_view word) {
  return word.size() > 1 && word.ends_with('y') && !is_vowel(word[word.size() - 2]);
}

std::string with_s(std::string_view word) {
  const std::string text(word);
  if (ends_in_consonant_y(word)) return text.substr(0, text.size() - 1) + "ies";
  for (const char* hiss : {"s", "x", "ch", "sh"}) {
    if (word.ends_with(hiss)) return text + "es";
  }
  return text + "s";
}

std::string with_ed(std::string_view word) {
  const std::string text(word);
  if (ends_in_consonant_y(word)) return text.substr(0, text.size() - 1) + "ied";
  return text + (word.ends_with('e') ? "d" : "ed");
}

}  // namespace

std::string noun_form(const Noun& noun, Number number) {
  if (number == Number::singular) return std::string(noun.english);
  return noun.special.plural.empty() ? with_s(noun.english) : std::string(noun.special.plural);
}

std::string third_person(std::string_view base) { return with_s(base); }

std::string past(const Verb& verb) {
  return verb.special.past.empty() ? with_ed(base(verb)) : std::string(verb.special.past);
}

std::string_view base(const Verb& verb) { return verb.english.substr(0, verb.english.find(' ')); }

std::string_view preposition(const Verb& verb) {
  const size_t space = verb.english.find(' ');
  return space == std::string_view::npos ? std::string_view() : verb.english.substr(space + 1);
}

// No word of the lexicon is spelt with a vowel and spoken without, or the other way round (hour, university).
std::string_view indefinite(std::string_view next) { return is_vowel(next.front()) ? "an" : "a"; }

}  // namespace heed::grammar::english
