// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "heed/grammar/patterns.h"

namespace heed::grammar {

namespace {

using namespace trait;

constexpr Traits kSurroundings = kLand | kBuilding | kRoom | kTown;

// Where an action may happen.
std::optional<Place> scene(Drawer& draw) {
  struct Scene {
    Preposition preposition;
    Traits place;
  };
  static constexpr std::array<Scene, 6> kScenes{{{Preposition::in, kLand | kTown},
                                                 {Preposition::in, kRoofed},
                                                 {Preposition::near, kSurroundings | kWater | kWay},
                                                 {Preposition::near, kOpening | kHeight | kPlant},
                                                 {Preposition::behind, kBuilding | kOpening},
                                                 {Preposition::under, kFurniture | kPlant}}};
  const Scene& where = draw.pick(kScenes);
  const Number number = draw.chance(85) ? Number::singular : Number::plural;
  const auto phrase =
      draw.phrase(where.place, {.reference = Reference::definite, .number = number, .adjective_percent = 15});
  if (!phrase) return std::nullopt;
  return Place{where.preposition, *phrase};
}

std::optional<Place> place_for(Drawer& draw, const Verb& verb) {
  if (verb.english == "fly") {
    const auto phrase = draw.phrase(kWater | kTown | kLand | kHeight, {.reference = Reference::definite});
    if (!phrase) return std::nullopt;
    return Place{Preposition::over, *phrase};
  }
  if (verb.english == "arrive") return std::nullopt;
  return scene(draw);
}

// 'Put' and 'leave' want to know where.
bool wants_place(const Verb& verb) { return verb.english == "put" || verb.english == "leave"; }

std::optional<Place> receptacle(Drawer& draw) {
  const bool on_top = draw.chance(50);
  const auto phrase = draw.phrase(on_top ? kTop : kContainer, {.reference = Reference::definite});
  if (!phrase) return std::nullopt;
  return Place{on_top ? Preposition::on : Preposition::in, *phrase};
}

// Of actions on things, those that have a scene: 'read the book in the garden'.
bool has_scene(const Verb& verb) {
  static constexpr std::array<std::string_view, 10> kVerbs{"eat",  "drink", "read", "write", "lose",
                                                           "sell", "wash",  "sew",  "cook",  "cut"};
  return std::ranges::find(kVerbs, verb.english) != kVerbs.end();
}

// Animals as objects are definite: then they take 'a' in Spanish as people do.
Reference object_reference(Traits object) { return (object & kAnimal) != 0 ? Reference::definite : Reference::any; }

// Subject and object of a verb; a clause that denies or asks speaks of somebody in particular.
std::optional<Clause> action(Drawer& draw, const Verb& verb, Reference reference) {
  Clause clause{.verb = &verb, .tense = draw.tense()};
  const auto subject = draw.phrase(verb.subject, {.reference = reference});
  if (!subject) return std::nullopt;
  clause.subject = *subject;
  if (verb.object) {
    const Reference known = reference == Reference::definite ? reference : object_reference(verb.object);
    clause.object = draw.phrase(verb.object, {.reference = known, .not_scale = verb.special.scale});
    if (!clause.object) return std::nullopt;
    if (wants_place(verb)) {
      clause.place = receptacle(draw);
    } else if (has_scene(verb) && draw.chance(30)) {
      clause.place = scene(draw);
    }
  } else if (draw.chance(85)) {
    clause.place = place_for(draw, verb);
  }
  return clause;
}

// What can hinder can be too much: 'too wide', but not 'too delicious'.
bool can_be_too_much(const Adjective* adjective) {
  for (const ReasonFrame& frame : reason_frames()) {
    if (frame.ground != Ground::hindrance) continue;
    for (const auto* list : {&frame.of_subject, &frame.of_object}) {
      if (std::ranges::find(*list, adjective) != list->end()) return true;
    }
  }
  return false;
}

void draw_degree(Drawer& draw, Clause& clause, int percent) {
  const Adjective* adjective = clause.adjectives.front();
  const bool gradable = clause.adjectives.size() == 1 && adjective->special.gradable;
  if (!gradable || !draw.chance(percent)) return;
  clause.degree = draw.chance(40) && can_be_too_much(adjective) ? Degree::too : Degree::very;
}

// A predicate for a noun, and sometimes a second one that takes the same verb 'to be'.
bool describe(Drawer& draw, Clause& clause, int two_percent) {
  const NounPhrase& subject = clause.subject;
  const std::string_view said = subject.adjective ? subject.adjective->scale : "";
  const Adjective* first = draw.adjective_for(*subject.noun, said);
  if (!first || first->special.attribute_only) return false;
  clause.adjectives = {first};
  if (!draw.chance(two_percent)) return true;
  const Adjective* second = draw.adjective_for(*subject.noun, said);
  const bool fits =
      second && !second->special.attribute_only && second->copula == first->copula && second->scale != first->scale;
  if (fits) clause.adjectives.push_back(second);
  return true;
}

std::optional<Clause> quality(Drawer& draw, int adjective_percent) {
  Clause clause{.tense = draw.tense()};
  const auto subject = draw.phrase(kAny, {.reference = Reference::definite, .adjective_percent = adjective_percent});
  if (!subject) return std::nullopt;
  clause.subject = *subject;
  if (!describe(draw, clause, 25)) return std::nullopt;
  draw_degree(draw, clause, 40);
  return clause;
}

std::optional<Clause> location(Drawer& draw) {
  const ErrandFrame& frame = draw.pick(errand_frames());
  Clause clause{.tense = draw.tense()};
  const auto thing = draw.phrase(frame.thing, {.reference = Reference::definite});
  const auto place =
      draw.phrase(frame.place, {.reference = Reference::definite, .number = Number::singular, .adjective_percent = 15});
  if (!thing || !place) return std::nullopt;
  clause.subject = *thing;
  clause.place = Place{frame.preposition, *place};
  return clause;
}

Traits kind_of(const Noun& noun) { return noun.is(kHuman) ? kHuman : noun.is(kAnimal) ? kAnimal : 0; }

const Verb& any_verb(Drawer& draw) { return draw.pick(verbs()); }

const Verb& transitive(Drawer& draw) {
  while (true) {
    const Verb& verb = any_verb(draw);
    if (verb.object && !wants_place(verb)) return verb;
  }
}

// 'that ate the bread', 'who was sick': the head is the subject.
std::optional<Clause> subject_relative(Drawer& draw, const NounPhrase& head, Tense tense) {
  Clause clause{.subject = again(head, Form::gap), .tense = tense};
  if (draw.chance(30)) {
    if (!describe(draw, clause, 0)) return std::nullopt;
    if (head.adjective && head.adjective->scale == clause.adjectives.front()->scale) return std::nullopt;
    return clause;
  }
  const Verb& verb = transitive(draw);
  if (!head.noun->is(verb.subject)) return std::nullopt;
  clause.verb = &verb;
  clause.object = draw.phrase(
      verb.object, {.reference = Reference::definite, .adjective_percent = 10, .not_scale = verb.special.scale});
  if (!clause.object) return std::nullopt;
  settle_tense(clause);
  return clause;
}

// 'that the dog ate': the head is the object, and not animate ('a la que' would be another grammar).
std::optional<Clause> object_relative(Drawer& draw, const NounPhrase& head, Tense tense) {
  const Verb& verb = transitive(draw);
  const bool fits = head.noun->is(verb.object) && !head.noun->is(kAnimate) &&
                    verb.spanish.find(' ') == verb.spanish.npos && verb.english.find(' ') == verb.english.npos;
  if (!fits) return std::nullopt;
  const auto subject = draw.phrase(verb.subject, {.reference = Reference::definite, .adjective_percent = 10});
  const bool that_that = subject && subject->determiner == Determiner::that_one;  // 'the camera that that witch lost'
  if (!subject || that_that || subject->noun->is(kMissile)) return std::nullopt;
  Clause clause{.subject = *subject, .verb = &verb, .tense = tense, .object = again(head, Form::gap)};
  settle_tense(clause);
  return clause;
}

std::optional<Clause> relative(Drawer& draw, const NounPhrase& head, Tense tense) {
  return head.noun->is(kAnimate) ? subject_relative(draw, head, tense) : object_relative(draw, head, tense);
}

}  // namespace

Drawn draw_action(Drawer& draw) {
  const bool negative = draw.chance(30);
  auto clause = action(draw, any_verb(draw), negative ? Reference::definite : Reference::any);
  if (!clause) return std::nullopt;
  draw.polarity(*clause, negative ? 100 : 0);
  settle_tense(*clause);
  return Tree{.main = std::move(*clause)};
}

Drawn draw_description(Drawer& draw) {
  auto clause = draw.chance(75) ? quality(draw, 15) : location(draw);
  if (!clause) return std::nullopt;
  draw.polarity(*clause, clause->adjectives.size() == 2 ? 0 : 25);
  return Tree{.main = std::move(*clause)};
}

Drawn draw_question(Drawer& draw) {
  auto clause = draw.chance(55)   ? action(draw, any_verb(draw), Reference::definite)
                : draw.chance(75) ? quality(draw, 15)
                                  : location(draw);
  if (!clause) return std::nullopt;
  clause->negative = clause->adjectives.size() < 2 && draw.chance(15);
  return Tree{.main = std::move(*clause), .question = true};
}

Drawn draw_relative(Drawer& draw) {
  const bool in_subject = draw.chance(50);
  std::optional<Clause> clause;
  if (in_subject && draw.chance(40)) {
    clause = quality(draw, 0);
  } else {
    clause = action(draw, transitive(draw), Reference::definite);
  }
  if (!clause || (!in_subject && !clause->object)) return std::nullopt;
  clause->place.reset();
  NounPhrase& head = in_subject ? clause->subject : *clause->object;
  const Tense tense = clause->tense == Tense::past || draw.chance(50) ? Tense::past : Tense::present;
  const bool head_fits =
      !head.noun->is(kKin) && head.determiner != Determiner::my && head.determiner != Determiner::our;
  if (!head_fits) return std::nullopt;
  auto inner = relative(draw, head, tense);
  if (!inner) return std::nullopt;
  head.relative = std::make_shared<const Clause>(std::move(*inner));
  draw.polarity(*clause, 20);
  settle_tense(*clause);
  return Tree{.main = std::move(*clause)};
}

Drawn draw_coordination(Drawer& draw) {
  const Verb& verb = transitive(draw);
  auto clause = action(draw, verb, Reference::definite);
  if (!clause) return std::nullopt;
  const bool in_object = clause->object && draw.chance(40);
  const Traits kind = in_object ? verb.object : verb.subject;
  const auto other = draw.phrase(kind, {.reference = Reference::definite, .adjective_percent = 10});
  NounPhrase& first = in_object ? *clause->object : clause->subject;
  if (!other || kind_of(*first.noun) != kind_of(*other->noun)) return std::nullopt;
  first.and_also.push_back(*other);
  draw.polarity(*clause, in_object ? 0 : 20);  // Spanish would join two objects of a denied verb by 'ni'
  settle_tense(*clause);
  return Tree{.main = std::move(*clause)};
}

}  // namespace heed::grammar
