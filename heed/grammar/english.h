// SPDX-License-Identifier: Apache-2.0
#pragma once
// English word forms.
#include <string>
#include <string_view>

#include "heed/grammar/lexicon.h"

namespace heed::grammar::english {

std::string noun_form(const Noun& noun, Number number);

std::string third_person(std::string_view base);     // crosses, carries
std::string past(const Verb& verb);                  // crossed, ate; without a preposition
std::string_view base(const Verb& verb);             // 'look' of 'look for'
std::string_view preposition(const Verb& verb);      // 'for', or empty
std::string_view indefinite(std::string_view next);  // 'a', or 'an' before a vowel sound

}  // namespace heed::grammar::english
