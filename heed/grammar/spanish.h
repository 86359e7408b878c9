// SPDX-License-Identifier: Apache-2.0
#pragma once
// Spanish word forms: plurals, agreement, and verbs in the third person of the present, preterite and imperfect.
#include <string>
#include <string_view>

#include "heed/grammar/lexicon.h"

namespace heed::grammar::spanish {

enum class Tense { present, preterite, imperfect };

struct Agreement {
  Gender gender = Gender::masculine;
  Number number = Number::singular;
};

std::string plural(std::string_view word);  // luz -> luces, jardín -> jardines
std::string noun_form(const Noun& noun, Number number);

std::string adjective_form(const Adjective& adjective, Agreement agreement);
std::string adjective_before_noun(const Adjective& adjective, Agreement agreement);  // buen, primer, gran

std::string conjugate(const Verb& verb, Tense tense, Number number);  // without a preposition
std::string_view preposition(const Verb& verb);                       // 'en' of 'entrar en', or empty
std::string_view copula(Copula copula, Tense tense, Number number);   // present or imperfect

std::string_view conjunction_and(std::string_view next);  // 'y', or 'e' before the sound of i

}  // namespace heed::grammar::spanish
