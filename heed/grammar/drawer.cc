// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/drawer.h"

#include <algorithm>
#include <array>

#include "heed/grammar/english.h"

namespace heed::grammar {

namespace {

constexpr int kPluralPercent = 30, kNumeralPercent = 25;

// What is 'mine', and what is 'ours' as well.
constexpr Traits kOwned = trait::kClothes | trait::kFurniture | trait::kContainer | trait::kVehicle | trait::kText |
                          trait::kDevice | trait::kInstrument | trait::kValuable | trait::kTool;
constexpr Traits kShared = kOwned | trait::kBuilding | trait::kTown | trait::kLand | trait::kRoom | trait::kWay;

Determiner definite_for(const Noun& noun, uint64_t draw_of_ten) {
  using enum Determiner;
  if (draw_of_ten == 0) return this_one;
  if (draw_of_ten == 1) return that_one;
  if (draw_of_ten == 2 && noun.is(kOwned)) return my;
  if (draw_of_ten == 3 && noun.is(kShared)) return our;
  return the;
}

// 'The first house', never 'my second mothers'.
bool order_fits(const Adjective& order, const NounPhrase& phrase) {
  const bool repeats = order.english == "second" || order.english == "third";
  return phrase.determiner == Determiner::the && phrase.numeral == 0 && !phrase.noun->special.singular_only &&
         !phrase.noun->is(trait::kKin) && !(repeats && phrase.number == Number::plural);
}

}  // namespace

const Noun* Drawer::noun(Traits any_of, std::optional<Gender> gender) {
  std::vector<const Noun*> fitting;
  for (const Noun& noun : nouns()) {
    if (!noun.is(any_of) || (gender && noun.gender != *gender)) continue;
    if (std::ranges::find(used_, &noun) == used_.end()) fitting.push_back(&noun);
  }
  if (fitting.empty()) return nullptr;
  used_.push_back(pick(fitting));
  return used_.back();
}

const Adjective* Drawer::adjective_for(const Noun& noun, std::string_view not_scale) {
  std::vector<const Adjective*> fitting;
  for (const Adjective& adjective : adjectives()) {
    if (!describes(adjective, noun) || adjective.scale == not_scale) continue;
    fitting.push_back(&adjective);
  }
  return fitting.empty() ? nullptr : pick(fitting);
}

Number Drawer::number_for(const Noun& noun, const PhraseOptions& options) {
  if (noun.special.singular_only) return Number::singular;
  if (options.number) return *options.number;
  return chance(kPluralPercent) ? Number::plural : Number::singular;
}

void Drawer::determine(NounPhrase& phrase, Reference reference) {
  using enum Determiner;
  const bool plural = phrase.number == Number::plural;
  if (phrase.noun->is(trait::kKin)) {
    phrase.determiner = pick(std::array{the, my, my, my, our, our});
    return;
  }
  const bool definite = reference == Reference::definite || phrase.noun->special.singular_only;
  if (definite || chance(65)) {
    phrase.determiner = definite_for(*phrase.noun, rng_.below(10));
    if (plural && phrase.determiner != my && chance(kNumeralPercent))
      phrase.numeral = 2 + static_cast<int>(rng_.below(4));
    return;
  }
  if (!plural) {
    phrase.determiner = a;
    return;
  }
  phrase.determiner = pick(std::array{some, many, none, none});
  if (phrase.determiner == none) phrase.numeral = 2 + static_cast<int>(rng_.below(9));
}

void Drawer::describe(NounPhrase& phrase, const PhraseOptions& options) {
  if (!chance(options.adjective_percent)) return;
  const Adjective* adjective = adjective_for(*phrase.noun, options.not_scale);
  if (!adjective) return;
  if (adjective->scale == "order" && !order_fits(*adjective, phrase)) return;
  phrase.adjective = adjective;
}

std::optional<NounPhrase> Drawer::phrase(Traits any_of, const PhraseOptions& options) {
  const Noun* head = noun(any_of, options.gender);
  if (!head) return std::nullopt;
  NounPhrase phrase{.noun = head, .number = number_for(*head, options)};
  if (options.number && phrase.number != *options.number) return std::nullopt;  // no plural
  determine(phrase, options.reference);
  describe(phrase, options);
  return phrase;
}

void Drawer::polarity(Clause& clause, int negative_percent) {
  clause.negative = chance(negative_percent);
  clause.contracted = chance(70);
}

void settle_tense(Clause& clause) {
  const bool silent = clause.verb && !clause.negative && number_of(clause.subject) == Number::plural &&
                      english::past(*clause.verb) == english::base(*clause.verb);
  if (silent) clause.tense = Tense::past;
}

}  // namespace heed::grammar
