// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/syntax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "heed/text/words.h"

namespace heed::grammar {
namespace {

NounPhrase the(const char* word, Number number = Number::singular) { return {.noun = &noun(word), .number = number}; }
NounPhrase with(Determiner determiner, const char* word, const char* description = nullptr) {
  return {.noun = &noun(word), .determiner = determiner, .adjective = description ? &adjective(description) : nullptr};
}
NounPhrase it(const char* word, Number number = Number::singular) { return again(the(word, number), Form::pronoun); }

std::shared_ptr<const Clause> relative(Clause clause) { return std::make_shared<const Clause>(std::move(clause)); }

std::string both(const Tree& tree) {
  const Sentence sentence = realise(tree);
  return text::detokenise(sentence.source) + " | " + text::detokenise(sentence.target);
}

Tree not_crossed_because(const char* who, const char* reason) {
  return {.main = {.subject = the("animal"), .verb = &verb("cross"), .negative = true, .object = the("street")},
          .conjunction = Conjunction::because,
          .second = Clause{.subject = it(who), .degree = Degree::too, .adjectives = {&adjective(reason)}}};
}

TEST(Syntax, TranslatesAPronounByItsReferent) {
  EXPECT_EQ(both(not_crossed_because("animal", "tired")),
            "The animal didn't cross the street because it was too tired. | "
            "El animal no cruzó la calle porque estaba demasiado cansado.");
  EXPECT_EQ(both(not_crossed_because("street", "wide")),
            "The animal didn't cross the street because it was too wide. | "
            "El animal no cruzó la calle porque era demasiado ancha.");
  const NounPhrase boy = the("boy");
  EXPECT_EQ(both({.main = {.subject = boy, .verb = &verb("buy"), .object = the("apple")},
                  .conjunction = Conjunction::and_then,
                  .second = Clause{.subject = again(boy, Form::gap), .verb = &verb("eat"), .object = it("apple")}}),
            "The boy bought the apple and ate it. | El niño compró la manzana y la comió.");
}

TEST(Syntax, KnowsAlignmentReferentsTagsAndCombinations) {
  const Sentence wide = realise(not_crossed_because("street", "wide"));
  EXPECT_EQ(pharaoh(wide.alignment), "0-0 1-1 2-2 2p3 3-3 4-4 5-5 6-6 7p7 8-7 9-8 10-9 11-10");
  EXPECT_EQ(to_string(wide.referents), "7-5");
  EXPECT_EQ(to_string(wide.tags), "DET NOUN AUX VERB DET NOUN SCONJ PRON AUX ADV ADJ PUNCT");
  EXPECT_EQ(wide.combinations, (std::vector<Combination>{{"street", "it"}, {"street", "wide"}}));
  EXPECT_EQ(to_string(realise(not_crossed_because("animal", "tired")).referents), "7-1");
}

TEST(Syntax, PutsObjectPronounsBeforeTheVerbAndAfterNo) {
  const NounPhrase queens = the("queen", Number::plural);
  EXPECT_EQ(both({.main = {.subject = queens, .verb = &verb("find"), .object = the("letter", Number::plural)},
                  .conjunction = Conjunction::but,
                  .second = Clause{.subject = again(queens, Form::pronoun),
                                   .verb = &verb("read"),
                                   .negative = true,
                                   .contracted = false,
                                   .object = it("letter", Number::plural)}}),
            "The queens found the letters, but they did not read them. | "
            "Las reinas encontraron las cartas, pero no las leyeron.");
}

TEST(Syntax, ContractsAndMarksPeopleAndAnimals) {
  const auto said = [](const char* what, NounPhrase object) {
    return both({.main = {.subject = the("girl"), .verb = &verb(what), .object = std::move(object)}});
  };
  EXPECT_EQ(said("see", the("king")), "The girl saw the king. | La niña vio al rey.");
  EXPECT_EQ(said("see", the("queen")), "The girl saw the queen. | La niña vio a la reina.");
  EXPECT_EQ(said("see", the("eagle")), "The girl saw the eagle. | La niña vio al águila.");
  EXPECT_EQ(said("see", the("castle")), "The girl saw the castle. | La niña vio el castillo.");
  EXPECT_EQ(said("look for", with(Determiner::a, "actor")),
            "The girl looked for an actor. | La niña buscó a un actor.");
  EXPECT_EQ(said("enter", the("hotel")), "The girl entered the hotel. | La niña entró en el hotel.");
  EXPECT_EQ(both({.main = {.subject = the("bird"),
                           .verb = &verb("live"),
                           .tense = Tense::present,
                           .place = Place{Preposition::near, the("river")}}}),
            "The bird lives near the river. | El pájaro vive cerca del río.");
}

TEST(Syntax, KnowsTheFeminineNounsWithEl) {
  const auto said = [](NounPhrase subject, const char* state) {
    return both({.main = {.subject = std::move(subject), .tense = Tense::present, .adjectives = {&adjective(state)}}});
  };
  EXPECT_EQ(said(the("water"), "cold"), "The water is cold. | El agua está fría.");
  EXPECT_EQ(said(with(Determiner::this_one, "water"), "cold"), "This water is cold. | Esta agua está fría.");
  EXPECT_EQ(said(with(Determiner::a, "eagle"), "sick"), "An eagle is sick. | Un águila está enferma.");
  EXPECT_EQ(said(with(Determiner::the, "eagle", "old"), "sick"),
            "The old eagle is sick. | El águila vieja está enferma.");
  EXPECT_EQ(said(with(Determiner::the, "eagle", "first"), "sick"),
            "The first eagle is sick. | La primera águila está enferma.");
  EXPECT_EQ(said(the("eagle", Number::plural), "sick"), "The eagles are sick. | Las águilas están enfermas.");
}

TEST(Syntax, PlacesAdjectivesAndNumerals) {
  const auto said = [](NounPhrase subject) {
    return both({.main = {.subject = std::move(subject), .verb = &verb("dance"), .tense = Tense::present}});
  };
  EXPECT_EQ(said(with(Determiner::a, "king", "good")), "A good king dances. | Un buen rey baila.");
  EXPECT_EQ(said(with(Determiner::that_one, "queen", "great")), "That great queen dances. | Esa gran reina baila.");
  EXPECT_EQ(said(with(Determiner::our, "aunt", "happy")), "Our happy aunt dances. | Nuestra tía contenta baila.");
  EXPECT_EQ(said({.noun = &noun("witch"),
                  .number = Number::plural,
                  .determiner = Determiner::none,
                  .numeral = 2,
                  .adjective = &adjective("young")}),
            "Two young witches dance. | Dos brujas jóvenes bailan.");
  EXPECT_EQ(said({.noun = &noun("man"), .number = Number::plural, .determiner = Determiner::this_one, .numeral = 10}),
            "These ten men dance. | Estos diez hombres bailan.");
  EXPECT_EQ(said({.noun = &noun("woman"), .number = Number::plural, .determiner = Determiner::many}),
            "Many women dance. | Muchas mujeres bailan.");
}

TEST(Syntax, Asks) {
  EXPECT_EQ(both({.main = {.subject = the("street"), .tense = Tense::present, .adjectives = {&adjective("wide")}},
                  .question = true}),
            "Is the street wide? | ¿Es ancha la calle?");
  EXPECT_EQ(both({.main = {.subject = the("boy"), .verb = &verb("eat"), .object = the("bread")}, .question = true}),
            "Did the boy eat the bread? | ¿El niño comió el pan?");
  EXPECT_EQ(both({.main = {.subject = the("boy"),
                           .verb = &verb("eat"),
                           .tense = Tense::present,
                           .negative = true,
                           .object = the("bread")},
                  .question = true}),
            "Doesn't the boy eat the bread? | ¿El niño no come el pan?");
}

TEST(Syntax, Relates) {
  NounPhrase dog = the("dog");
  dog.relative = relative({.subject = again(dog, Form::gap), .verb = &verb("eat"), .object = the("bread")});
  EXPECT_EQ(both({.main = {.subject = dog, .adjectives = {&adjective("sick")}}}),
            "The dog that ate the bread was sick. | El perro que comió el pan estaba enfermo.");
  NounPhrase bread = the("bread");
  bread.relative = relative({.subject = the("dog"), .verb = &verb("eat"), .object = again(bread, Form::gap)});
  EXPECT_EQ(both({.main = {.subject = bread, .adjectives = {&adjective("hard")}}}),
            "The bread that the dog ate was hard. | El pan que comió el perro estaba duro.");
  NounPhrase women = the("woman", Number::plural);
  women.relative = relative({.subject = again(women, Form::gap), .adjectives = {&adjective("poor")}});
  EXPECT_EQ(both({.main = {.subject = women, .verb = &verb("work"), .tense = Tense::present}}),
            "The women who were poor work. | Las mujeres que eran pobres trabajan.");
}

TEST(Syntax, Joins) {
  NounPhrase son = with(Determiner::my, "son");
  son.and_also = {with(Determiner::our, "daughter")};
  EXPECT_EQ(both({.main = {.subject = son, .verb = &verb("sing")}}),
            "My son and our daughter sang. | Mi hijo y nuestra hija cantaron.");
  NounPhrase girl = the("girl");
  girl.and_also = {the("cow")};
  EXPECT_EQ(both({.main = {.subject = the("boy"), .verb = &verb("follow"), .object = girl}}),
            "The boy followed the girl and the cow. | El niño siguió a la niña y a la vaca.");
  NounPhrase apple = the("apple");
  apple.and_also = {the("egg")};
  EXPECT_EQ(both({.main = {.subject = the("boy"), .verb = &verb("eat"), .object = apple}}),
            "The boy ate the apple and the egg. | El niño comió la manzana y el huevo.");
  NounPhrase river = the("river");
  river.and_also = {the("lagoon")};
  EXPECT_EQ(both({.main = {.subject = the("duck"), .verb = &verb("swim in"), .object = river}}),
            "The duck swam in the river and the lagoon. | El pato nadó en el río y en la laguna.");
  EXPECT_EQ(both({.main = {.subject = girl, .adjectives = {&adjective("strong"), &adjective("intelligent")}}}),
            "The girl and the cow were strong and intelligent. | La niña y la vaca eran fuertes e inteligentes.");
  const Sentence sentence = realise({.main = {.subject = son, .verb = &verb("sing")}});
  EXPECT_EQ(pharaoh(sentence.alignment), "0-0 1-1 2-2 3-3 4-4 5-5 6-6");
}

TEST(Syntax, LinksWordsThatAreSeveralOrNone) {
  // 'under' is 'debajo de', and its 'de' melts into 'del'; 'isn't' is both 'no' and 'está'.
  const Sentence under = realise({.main = {.subject = the("cat"),
                                           .tense = Tense::present,
                                           .negative = true,
                                           .place = Place{Preposition::under, the("sofa")}}});
  EXPECT_EQ(text::detokenise(under.target), "El gato no está debajo del sofá.");
  EXPECT_EQ(pharaoh(under.alignment), "0-0 1-1 2-2 2-3 3-4 3p5 4-5 5-6 6-7");
  // 'for' is in 'busca', and so is 'a' in the way people are looked for.
  const Sentence search =
      realise({.main = {.subject = the("girl"), .verb = &verb("look for"), .object = the("mother")}});
  EXPECT_EQ(text::detokenise(search.target), "La niña buscó a la madre.");
  EXPECT_EQ(pharaoh(search.alignment), "0-0 1-1 2-2 2p3 3p2 4-4 5p3 5-5 6-6");
}

}  // namespace
}  // namespace heed::grammar
