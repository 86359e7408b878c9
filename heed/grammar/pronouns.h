// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a model knows what a pronoun stands for: by the gender of its translation, and by what the pronoun attends to
// in each head of its encoder. For sentences of the built-in grammar, which tells.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/decode/engine.h"
#include "heed/grammar/sentence.h"

namespace heed::grammar {

// Pronouns whose gender the reference shows, and whether the translation has the same.
struct PronounGenders {
  int64_t pronouns = 0, right = 0, wrong = 0, absent = 0;  // absent: the word is not there in either gender
};

// `translations` has one for each sentence.
PronounGenders pronoun_genders(std::span<const Sentence> sentences, std::span<const std::string> translations);

// In sentences with at least two nouns: how often the noun that gets most of a head's attention is the one that the
// pronoun stands for, seen from the pronoun, and seen from the word whose translation has that noun's gender: 'tired'
// in 'it was tired', which may be the pronoun itself.
struct PronounHead {
  std::string layer;
  int64_t head = 0, found = 0, found_from_agreeing = 0;
};
struct PronounAttention {
  int64_t pronouns = 0, agreeing = 0;  // words whose attention was measured
  double by_chance = 0;                // as many pronouns would be found by taking any noun
  std::vector<PronounHead> heads{};
};
PronounAttention pronoun_attention(const decode::Engine&, std::span<const Sentence> sentences,
                                   const decode::CallOptions& = {});

}  // namespace heed::grammar
