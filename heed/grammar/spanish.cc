// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/spanish.h"

#include <array>
#include <cassert>
#include <utility>

namespace heed::grammar::spanish {

namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kAccents{
    {{"á", 'a'}, {"é", 'e'}, {"í", 'i'}, {"ó", 'o'}, {"ú", 'u'}}};

bool is_plain_vowel(char c) { return std::string_view("aeiou").find(c) != std::string_view::npos; }

bool ends_in_vowel(std::string_view word) {
  if (is_plain_vowel(word.back())) return true;
  for (const auto& [accented, plain] : kAccents) {
    if (word.ends_with(accented)) return true;
  }
  return false;
}

// jardín -> jardin: in the plural the stress falls there without the accent.
std::string without_last_accent(std::string_view word) {
  const std::string_view consonant = word.substr(word.size() - 1);
  const std::string_view rest = word.substr(0, word.size() - 1);
  for (const auto& [accented, plain] : kAccents) {
    if (!rest.ends_with(accented)) continue;
    return std::string(rest.substr(0, rest.size() - accented.size())) + plain + std::string(consonant);
  }
  return std::string(word);
}

std::string_view infinitive(const Verb& verb) { return verb.spanish.substr(0, verb.spanish.find(' ')); }

enum class Conjugation { ar, er, ir };

Conjugation conjugation(std::string_view infinitive) {
  if (infinitive.ends_with("ar")) return Conjugation::ar;
  return infinitive.ends_with("er") ? Conjugation::er : Conjugation::ir;  // -ir or -ír
}

std::string_view stem(std::string_view infinitive) {
  return infinitive.substr(0, infinitive.size() - (infinitive.ends_with("ír") ? 3 : 2));
}

std::string present(const Verb& verb, Number number) {
  const std::string_view root = verb.special.present.empty() ? stem(infinitive(verb)) : verb.special.present;
  const char* vowel = conjugation(infinitive(verb)) == Conjugation::ar ? "a" : "e";
  return std::string(root) + vowel + (number == Number::plural ? "n" : "");
}

std::string strong_preterite(std::string_view root, Number number) {
  if (number == Number::singular) return std::string(root) + "o";
  return std::string(root) + (root.ends_with('j') ? "eron" : "ieron");
}

std::string preterite(const Verb& verb, Number number) {
  const std::string_view root = verb.special.preterite.empty() ? stem(infinitive(verb)) : verb.special.preterite;
  const bool one = number == Number::singular;
  if (verb.special.strong) return strong_preterite(root, number);
  if (conjugation(infinitive(verb)) == Conjugation::ar) return std::string(root) + (one ? "ó" : "aron");
  const bool silent_u = root.ends_with("gu") || root.ends_with("qu");
  if (ends_in_vowel(root) && !silent_u) return std::string(root) + (one ? "yó" : "yeron");  // leyó
  const bool one_syllable = root.find_first_of("aeiou") == std::string_view::npos;          // vio has no accent
  return std::string(root) + (one ? (one_syllable ? "io" : "ió") : "ieron");
}

std::string imperfect(const Verb& verb, Number number) {
  const bool ar = conjugation(infinitive(verb)) == Conjugation::ar;
  return std::string(stem(infinitive(verb))) + (ar ? "aba" : "ía") + (number == Number::plural ? "n" : "");
}

}  // namespace

std::string plural(std::string_view word) {
  if (ends_in_vowel(word)) return std::string(word) + "s";
  if (word.ends_with('z')) return std::string(word.substr(0, word.size() - 1)) + "ces";
  const bool loses_accent = word.ends_with('n') || word.ends_with('s');
  return (loses_accent ? without_last_accent(word) : std::string(word)) + "es";
}

std::string noun_form(const Noun& noun, Number number) {
  return number == Number::plural ? plural(noun.spanish) : std::string(noun.spanish);
}

std::string adjective_form(const Adjective& adjective, Agreement agreement) {
  const bool many = agreement.number == Number::plural;
  if (agreement.gender == Gender::feminine) {
    std::string form(adjective.special.feminine.empty() ? adjective.spanish : adjective.special.feminine);
    if (form.back() == 'o') form.back() = 'a';
    if (adjective.special.plural.empty()) return many ? plural(form) : form;
    return std::string(many ? adjective.special.plural : form);  // an irregular plural serves both genders: jóvenes
  }
  if (!many) return std::string(adjective.spanish);
  return adjective.special.plural.empty() ? plural(adjective.spanish) : std::string(adjective.special.plural);
}

std::string adjective_before_noun(const Adjective& adjective, Agreement agreement) {
  const bool shortened = !adjective.special.short_form.empty() && agreement.number == Number::singular &&
                         (agreement.gender == Gender::masculine || adjective.special.short_before_feminine);
  return shortened ? std::string(adjective.special.short_form) : adjective_form(adjective, agreement);
}

std::string conjugate(const Verb& verb, Tense tense, Number number) {
  switch (tense) {
    case Tense::present:
      return present(verb, number);
    case Tense::preterite:
      return preterite(verb, number);
    default:
      return imperfect(verb, number);
  }
}

std::string_view preposition(const Verb& verb) {
  const size_t space = verb.spanish.find(' ');
  return space == std::string_view::npos ? std::string_view() : verb.spanish.substr(space + 1);
}

std::string_view copula(Copula copula, Tense tense, Number number) {
  assert(tense != Tense::preterite);
  const bool one = number == Number::singular, now = tense == Tense::present;
  if (copula == Copula::ser) return now ? (one ? "es" : "son") : (one ? "era" : "eran");
  return now ? (one ? "está" : "están") : (one ? "estaba" : "estaban");
}

std::string_view conjunction_and(std::string_view next) {
  const bool sound_of_i = next.starts_with("i") || next.starts_with("hi");
  const bool diphthong = next.starts_with("hie") || next.starts_with("hia");
  return sound_of_i && !diphthong ? "e" : "y";
}

}  // namespace heed::grammar::spanish
