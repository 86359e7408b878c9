// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sentences with a reason, in which a word tells which of two nouns 'it' stands for:
//
//   The animal didn't cross the street because it was too tired.   ... cansado, as el animal
//   The animal didn't cross the street because it was too wide.    ... ancha, as la calle
//
// Over beasts and ways of the grammar's lexicon that differ in gender.
#include <array>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/lab/translator.h"

namespace heed::lab {

// Alike but for the word that tells: about the beast, and about the way. They have as many words.
using ReasonPair = std::array<grammar::Sentence, 2>;

struct Reasons {
  explicit Reasons(uint64_t seed);
  Sentences sentences{};  // to train on, with tokenizers; none of them has two nouns of an unseen pair
  std::vector<ReasonPair> unseen{};

  // The log-odds of the right gender against the other, at the Spanish word that shows it.
  analysis::Question question(const models::Model&, const grammar::Sentence&) const;
};

// Where the noun stands that 'it' means, and where the other one.
std::array<int64_t, 2> nouns_of(const grammar::Sentence&);

}  // namespace heed::lab
