// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/reasons.h"

#include <utility>

#include "heed/base/error.h"
#include "heed/grammar/agreement.h"
#include "heed/grammar/syntax.h"

namespace heed::lab {
namespace {

using grammar::Adjective;
using grammar::Noun;
using grammar::Sentence;

Sentence said(const Noun& beast, const Noun& way, const Adjective& telling, bool of_beast) {
  const grammar::NounPhrase who{.noun = &beast}, what{.noun = &way};
  grammar::Clause reason{.subject = grammar::again(of_beast ? who : what, grammar::Form::pronoun),
                         .degree = grammar::Degree::too,
                         .adjectives = {&telling}};
  return grammar::realise({.main = {.subject = who, .verb = &grammar::verb("cross"), .negative = true, .object = what},
                           .conjunction = grammar::Conjunction::because,
                           .second = std::move(reason)});
}

}  // namespace

Reasons::Reasons(uint64_t seed) {
  constexpr std::array kOfBeasts = {"tired", "sick", "scared", "nervous", "lazy"},
                       kOfWays = {"wide", "long", "narrow", "wet", "dangerous"};
  Rng rng(seed);
  for (const Noun& beast : grammar::nouns()) {
    for (const Noun& way : grammar::nouns()) {
      if (!beast.is(grammar::trait::kBeast) || !way.is(grammar::trait::kWay) || beast.gender == way.gender) continue;
      const bool held_out = rng.below(5) == 0;
      for (size_t i = 0; i < kOfBeasts.size(); ++i) {
        const ReasonPair pair{said(beast, way, grammar::adjective(kOfBeasts[i]), true),
                              said(beast, way, grammar::adjective(kOfWays[i]), false)};
        if (held_out) {
          unseen.push_back(pair);
        } else {
          sentences.train.insert(sentences.train.end(), pair.begin(), pair.end());
        }
      }
    }
  }
  sentences.tokenizers = words_of(sentences.train);
}

analysis::Question Reasons::question(const models::Model& model, const Sentence& sentence) const {
  const grammar::AgreeingWord word = grammar::agreeing_words(sentence).at(0);
  const auto id = [&](const std::string& text) { return sentences.tokenizers.target->encode(text).at(0); };
  const int32_t right = id(sentence.target.at(static_cast<size_t>(word.target))), wrong = id(word.other);
  return {model, sentences.ids(sentence), {.position = word.target, .token = right, .against = wrong}};
}

// The nouns of a sentence, the right one first: 1 and 4 in 'The animal didn't cross the street because it ...'.
std::array<int64_t, 2> nouns_of(const grammar::Sentence& sentence) {
  const int64_t right = sentence.referents.at(0).noun;
  for (int64_t i = 0; i < std::ssize(sentence.tags); ++i) {
    if (sentence.tags[static_cast<size_t>(i)] == grammar::Tag::noun && i != right) return {right, i};
  }
  throw Error("lab: a sentence with one noun came, expected two");
}

}  // namespace heed::lab
