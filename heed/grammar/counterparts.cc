// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/counterparts.h"

#include <algorithm>
#include <map>

#include "heed/grammar/english.h"
#include "heed/grammar/frames.h"
#include "heed/text/utf8.h"

namespace heed::grammar {
namespace {

using Forms = std::map<std::string, NounForm, std::less<>>;

const Forms& noun_forms() {
  static const Forms kForms = [] {
    Forms forms;
    for (const Noun& noun : nouns()) {
      forms.emplace(english::noun_form(noun, Number::singular), NounForm{&noun, Number::singular});
      if (!noun.special.singular_only) {
        forms.emplace(english::noun_form(noun, Number::plural), NounForm{&noun, Number::plural});
      }
    }
    return forms;
  }();
  return kForms;
}

std::string_view pronoun_for(const NounForm& form) {
  NounPhrase phrase;
  phrase.noun = form.noun, phrase.number = form.number;
  return english_pronoun(phrase, Role::subject);
}

const std::string& word_at(const Sentence& sentence, int place) { return sentence.source[static_cast<size_t>(place)]; }

bool has_verb(const Sentence& sentence, const Verb& verb) {
  const std::string forms[] = {std::string(english::base(verb)), english::third_person(english::base(verb)),
                               english::past(verb)};
  return std::any_of(sentence.source.begin(), sentence.source.end(), [&](const std::string& word) {
    return std::find(std::begin(forms), std::end(forms), word) != std::end(forms);
  });
}

bool has(const std::vector<const Adjective*>& list, std::string_view english) {
  return std::any_of(list.begin(), list.end(), [&](const Adjective* one) { return one->english == english; });
}

std::vector<std::string> with_word(const Sentence& sentence, int place, std::string_view word) {
  std::vector<std::string> words = sentence.source;
  words[static_cast<size_t>(place)] = word;
  return words;
}

bool begins_with_vowel_sound(std::string_view word) { return english::indefinite(word) == "an"; }

}  // namespace

NounForm noun_form_of(const std::string& word) {
  const auto found = noun_forms().find(text::to_lower(std::string_view(word)));
  return found == noun_forms().end() ? NounForm{} : found->second;
}

int rival_of(const Sentence& sentence, const Referent& referent) {
  const NounForm meant = noun_form_of(word_at(sentence, referent.noun));
  if (!meant.noun) return -1;
  for (int i = 0; i < static_cast<int>(sentence.tags.size()); ++i) {
    if (i == referent.noun || sentence.tags[static_cast<size_t>(i)] != Tag::noun) continue;
    const NounForm other = noun_form_of(word_at(sentence, i));
    if (other.noun && other.noun->gender != meant.noun->gender && pronoun_for(other) == pronoun_for(meant)) return i;
  }
  return -1;
}

std::optional<std::vector<std::string>> with_other_adjective(const Sentence& sentence, const AgreeingWord& word) {
  const auto referent = std::find_if(sentence.referents.begin(), sentence.referents.end(),
                                     [&](const Referent& one) { return one.pronoun == word.pronoun; });
  if (word.source == word.pronoun || referent == sentence.referents.end()) return {};
  const int place = rival_of(sentence, *referent);
  if (place < 0) return {};
  const Noun& meant = *noun_form_of(word_at(sentence, referent->noun)).noun;
  const Noun& rival = *noun_form_of(word_at(sentence, place)).noun;
  const std::string& said = word_at(sentence, word.source);
  for (const ReasonFrame& frame : reason_frames()) {
    const bool of_subject = meant.is(frame.subject) && rival.is(frame.object) && has(frame.of_subject, said);
    const bool of_object = meant.is(frame.object) && rival.is(frame.subject) && has(frame.of_object, said);
    if ((!of_subject && !of_object) || !has_verb(sentence, *frame.verb)) continue;
    for (const Adjective* one : of_subject ? frame.of_object : frame.of_subject) {
      const bool same_degree = one->special.gradable || sentence.tags[static_cast<size_t>(word.source) - 1] != Tag::adv;
      if (describes(*one, rival) && !describes(*one, meant) && same_degree) {
        return with_word(sentence, word.source, one->english);
      }
    }
  }
  return {};
}

std::optional<std::vector<std::string>> with_other_noun(const Sentence& sentence, int place) {
  const std::string& said = word_at(sentence, place);
  const NounForm own = noun_form_of(said);
  if (!own.noun || said != text::to_lower(std::string_view(said))) return {};
  for (const Noun& one : nouns()) {
    const NounForm other{&one, own.number};
    const bool fits = (one.traits & own.noun->traits) == own.noun->traits && one.gender != own.noun->gender;
    if (!fits || pronoun_for(other) != pronoun_for(own)) continue;
    if (own.number == Number::plural ? one.special.singular_only
                                     : one.special.singular_only != own.noun->special.singular_only) {
      continue;
    }
    const std::string form = english::noun_form(one, own.number);
    const bool there = std::find(sentence.source.begin(), sentence.source.end(), form) != sentence.source.end();
    if (!there && begins_with_vowel_sound(form) == begins_with_vowel_sound(said)) {
      return with_word(sentence, place, form);
    }
  }
  return {};
}

}  // namespace heed::grammar
