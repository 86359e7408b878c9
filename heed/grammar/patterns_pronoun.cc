// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "heed/grammar/patterns.h"

namespace heed::grammar {

namespace {

using namespace trait;

bool same_pronoun(const NounPhrase& a, const NounPhrase& b) {
  return english_pronoun(a, Role::subject) == english_pronoun(b, Role::subject);
}

// Two phrases, often of the same number, so that one pronoun could mean either. Half of the time their Spanish genders
// are made to differ: then the translation depends on the referent. Were they always to differ, the wrong noun would
// tell as much as the right one.
struct Rivals {
  NounPhrase first, second;
};

std::optional<Rivals> draw_rivals(Drawer& draw, Traits first, Traits second, int same_number_percent,
                                  std::string_view second_not_scale = {}) {
  PhraseOptions options{.reference = Reference::definite, .adjective_percent = 15};
  const auto one = draw.phrase(first, options);
  if (!one) return std::nullopt;
  if (draw.chance(same_number_percent)) options.number = one->number;
  if (draw.chance(50)) {
    options.gender = one->noun->gender == Gender::masculine ? Gender::feminine : Gender::masculine;
  }
  options.not_scale = second_not_scale;
  const auto other = draw.phrase(second, options);
  if (!other) return std::nullopt;
  return Rivals{*one, *other};
}

// A thing in a place: one thing is not in several places.
std::optional<Rivals> draw_thing_and_place(Drawer& draw, const ErrandFrame& frame) {
  auto rivals = draw_rivals(draw, frame.thing, frame.place, 90);
  const bool scattered = rivals && rivals->first.number == Number::singular && rivals->second.number == Number::plural;
  return scattered ? std::nullopt : rivals;
}

// An adjective of the list for the phrase that is meant, which the pronoun's other reading rules out.
const Adjective* telling_adjective(Drawer& draw, const std::vector<const Adjective*>& list, const NounPhrase& meant,
                                   const NounPhrase& rival) {
  const Adjective* adjective = draw.pick(list);
  if (!describes(*adjective, *meant.noun)) return nullptr;
  if (same_pronoun(meant, rival) && describes(*adjective, *rival.noun)) return nullptr;
  if (meant.adjective && meant.adjective->scale == adjective->scale) return nullptr;
  return adjective;
}

const Verb* telling_verb(Drawer& draw, const std::vector<const Verb*>& list, const NounPhrase& meant,
                         const NounPhrase& rival) {
  const Verb* verb = draw.pick(list);
  const bool tells = meant.noun->is(verb->object) && !rival.noun->is(verb->object);
  const bool fits = !meant.adjective || meant.adjective->scale != verb->special.scale;
  return tells && fits ? verb : nullptr;
}

Degree reason_degree(Drawer& draw, const Adjective& adjective, Ground ground, bool because) {
  if (!adjective.special.gradable) return Degree::plain;
  if (ground == Ground::hindrance) return because ? Degree::too : Degree::very;
  return draw.chance(40) ? Degree::very : Degree::plain;
}

// A subject pronoun that could mean somebody else as well: 'the king helped the prince because he loved him'.
bool unclear_subject(const Clause& main, const Verb& second) {
  const auto could_be = [&](const NounPhrase& other) {
    return same_pronoun(main.subject, other) && other.noun->is(second.subject);
  };
  return (main.object && could_be(*main.object)) || (main.place && could_be(main.place->phrase));
}

// The second half of an errand: 'and closed it', or ', but she didn't close it'.
void add_second_action(Drawer& draw, Tree& tree, const Verb& verb, const NounPhrase& meant) {
  const bool denied = !unclear_subject(tree.main, verb) && draw.chance(30);
  tree.conjunction = denied ? Conjunction::but : Conjunction::and_then;
  tree.second = Clause{.subject = again(tree.main.subject, denied ? Form::pronoun : Form::gap),
                       .verb = &verb,
                       .tense = tree.main.tense,
                       .object = again(meant, Form::pronoun)};
  draw.polarity(*tree.second, denied ? 100 : 0);
}

// Both halves stand in the same tense, the past if either of them cannot show the present.
void settle_tenses(Tree& tree) {
  settle_tense(tree.main);
  if (!tree.second) return;
  settle_tense(*tree.second);
  const bool past = tree.main.tense == Tense::past || tree.second->tense == Tense::past;
  tree.main.tense = tree.second->tense = past ? Tense::past : Tense::present;
}

}  // namespace

Drawn draw_reason(Drawer& draw) {
  const bool of_subject = draw.chance(50);
  const ReasonFrame& frame = draw.pick(reason_frames());
  // People are never 'it': too many of them, and 'it' would mostly be the nearest noun.
  const Traits not_human = frame.subject & ~kHuman;
  const auto rivals = draw_rivals(draw, not_human && draw.chance(75) ? not_human : frame.subject, frame.object, 75,
                                  frame.verb->special.scale);
  if (!rivals) return std::nullopt;
  const NounPhrase& meant = of_subject ? rivals->first : rivals->second;
  const NounPhrase& rival = of_subject ? rivals->second : rivals->first;
  const Adjective* adjective = telling_adjective(draw, of_subject ? frame.of_subject : frame.of_object, meant, rival);
  if (!adjective) return std::nullopt;

  const bool because = draw.chance(70);
  Tree tree{.main = {.subject = rivals->first, .verb = frame.verb, .tense = draw.tense(), .object = rivals->second},
            .conjunction = because ? Conjunction::because : Conjunction::although};
  draw.polarity(tree.main, because == (frame.ground == Ground::hindrance) ? 100 : 0);
  tree.second = Clause{.subject = again(meant, Form::pronoun), .tense = tree.main.tense, .adjectives = {adjective}};
  tree.second->degree = reason_degree(draw, *adjective, frame.ground, because);
  settle_tenses(tree);
  return tree;
}

Drawn draw_errand(Drawer& draw) {
  const ErrandFrame& frame = draw.pick(errand_frames());
  const bool to_thing = draw.chance(50);
  const auto& actions = to_thing ? frame.to_thing : frame.to_place;
  if (actions.empty()) return std::nullopt;
  const auto subject = draw.phrase(frame.subject, {.adjective_percent = 15});
  const auto rivals = draw_thing_and_place(draw, frame);
  if (!subject || !rivals) return std::nullopt;
  const NounPhrase& meant = to_thing ? rivals->first : rivals->second;
  const Verb* verb = telling_verb(draw, actions, meant, to_thing ? rivals->second : rivals->first);
  if (!verb) return std::nullopt;

  Tree tree{.main = {.subject = *subject,
                     .verb = frame.verb,
                     .tense = draw.tense(),
                     .object = rivals->first,
                     .place = Place{frame.preposition, rivals->second}}};
  add_second_action(draw, tree, *verb, meant);
  settle_tenses(tree);
  return tree;
}

Drawn draw_location(Drawer& draw) {
  const ErrandFrame& frame = draw.pick(errand_frames());
  const bool to_thing = draw.chance(50);
  const auto& actions = to_thing ? frame.to_thing : frame.to_place;
  if (actions.empty() || !(frame.subject & kHuman)) return std::nullopt;
  const auto rivals = draw_thing_and_place(draw, frame);
  const auto subject = draw.phrase(kHuman, {.reference = Reference::definite, .adjective_percent = 15});
  if (!rivals || !subject) return std::nullopt;
  const NounPhrase& meant = to_thing ? rivals->first : rivals->second;
  const Verb* verb = telling_verb(draw, actions, meant, to_thing ? rivals->second : rivals->first);
  if (!verb) return std::nullopt;

  Tree tree{
      .main = {.subject = rivals->first, .tense = draw.tense(), .place = Place{frame.preposition, rivals->second}},
      .conjunction = Conjunction::and_then};
  tree.second =
      Clause{.subject = *subject, .verb = verb, .tense = tree.main.tense, .object = again(meant, Form::pronoun)};
  settle_tenses(tree);
  return tree;
}

Drawn draw_sequence(Drawer& draw) {
  const SequenceFrame& frame = draw.pick(sequence_frames());
  const Verb* first = draw.pick(frame.first);
  const Verb* second = draw.pick(frame.second);
  const bool animate = (first->object & second->object & kAnimate) != 0;
  const auto subject = draw.phrase(first->subject & second->subject, {.adjective_percent = 15});
  const auto object =
      draw.phrase(first->object & second->object, {.reference = animate ? Reference::definite : Reference::any,
                                                   .adjective_percent = 15,
                                                   .not_scale = second->special.scale});
  if (!subject || !object) return std::nullopt;

  Tree tree{.main = {.subject = *subject, .verb = first, .tense = draw.tense(), .object = object}};
  if (frame.conjunction == Conjunction::and_then) {
    add_second_action(draw, tree, *second, *object);
  } else {
    if (unclear_subject(tree.main, *second)) return std::nullopt;
    tree.conjunction = frame.conjunction;
    tree.second = Clause{.subject = again(*subject, Form::pronoun),
                         .verb = second,
                         .tense = tree.main.tense,
                         .object = again(*object, Form::pronoun)};
    draw.polarity(*tree.second, frame.second_negative ? 100 : 0);
  }
  settle_tenses(tree);
  return tree;
}

}  // namespace heed::grammar
