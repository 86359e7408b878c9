// SPDX-License-Identifier: Apache-2.0
#pragma once
// English sentences that differ from another one in one word, and with it in the gender of what a pronoun stands for:
// 'it was too wide' in the place of 'it was too tired', or 'the horse' in that of 'the cow'. What patching takes heads'
// outputs from.
#include <optional>
#include <string>
#include <vector>

#include "heed/grammar/agreement.h"
#include "heed/grammar/lexicon.h"
#include "heed/grammar/sentence.h"

namespace heed::grammar {

// The noun that a word of a sentence is, in either number; null where it is none.
struct NounForm {
  const Noun* noun = nullptr;
  Number number = Number::singular;
};
NounForm noun_form_of(const std::string& word);

// The noun of the other gender that the pronoun would stand for, but for the predicate; -1: there is none.
int rival_of(const Sentence&, const Referent&);

// The source with another adjective, which goes with the rival and not with the referent, in the place of word.source.
// None where that word is the pronoun itself, there is no rival, or no adjective that the grammar has for it there.
std::optional<std::vector<std::string>> with_other_adjective(const Sentence&, const AgreeingWord& word);

// The source with another noun of the other gender in the place of the one at `place`: all that is said of that one
// fits it, too. None where the grammar has no such noun, or the word is none.
std::optional<std::vector<std::string>> with_other_noun(const Sentence&, int place);

}  // namespace heed::grammar
