// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a Spanish sentence shows which noun an English pronoun stands for: 'lo' or 'la', 'cansado' or 'cansada'. The
// noun's gender decides the form; a translation that has the other form took the pronoun for another noun.
#include <string>
#include <vector>

#include "heed/grammar/sentence.h"

namespace heed::grammar {

// A target token that agrees with what a pronoun stands for, and what it would be in the other gender.
struct AgreeingWord {
  int pronoun, source;  // the pronoun, and the word of the source that it translates: 'it', or 'tired'
  int target;
  std::string other;
  bool operator==(const AgreeingWord&) const = default;
};

// By pronoun, then target. Pronouns whose gender Spanish does not show ('she slept', 'it was green') have none. Of the
// sentence, tokens, tags, alignment and referents are looked at: what the files of a split hold.
std::vector<AgreeingWord> agreeing_words(const Sentence& sentence);

enum class Verdict { right, wrong, absent };  // absent: neither form stands there
// What a translation has in the place of reference[word.target], found by the edits that lead from one to the other.
Verdict judge(const AgreeingWord& word, const std::vector<std::string>& reference,
              const std::vector<std::string>& translation);

// The sentence that files hold: a line of each. Throws Error where they do not fit each other.
Sentence sentence_of(const std::string& source, const std::string& target, const std::string& alignment,
                     const std::string& referents, const std::string& tags);

}  // namespace heed::grammar
