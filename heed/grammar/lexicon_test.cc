// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/lexicon.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "heed/base/testing.h"
#include "heed/grammar/english.h"

namespace heed::grammar {
namespace {

using heed::testing::error_of;

TEST(Lexicon, IsLargeEnough) {
  EXPECT_GE(nouns().size(), 150u);
  EXPECT_GE(verbs().size(), 80u);
  EXPECT_GE(adjectives().size(), 60u);
}

// An English word must have one translation, whatever stands around it.
TEST(Lexicon, HasEachEnglishFormOnce) {
  ASSERT_FALSE(nouns().empty() || adjectives().empty() || verbs().empty());
  std::set<std::string> forms;
  for (const Noun& noun : nouns()) {
    EXPECT_TRUE(forms.insert(english::noun_form(noun, Number::singular)).second) << noun.english;
    EXPECT_TRUE(forms.insert(english::noun_form(noun, Number::plural)).second) << noun.english;
  }
  forms.clear();
  for (const Adjective& adjective : adjectives()) {
    EXPECT_TRUE(forms.insert(std::string(adjective.english)).second) << adjective.english;
  }
  forms.clear();
  for (const Verb& verb : verbs()) EXPECT_TRUE(forms.insert(std::string(verb.english)).second) << verb.english;
}

TEST(Lexicon, HasBothGendersOfEveryKindThatAPronounMayStandFor) {
  using namespace trait;
  for (const Traits kind :
       {kHuman, kBeast,     kBird,      kFood,    kDrink,   kWay,  kWater,   kHeight, kLand,     kBuilding,
        kRoom,  kFurniture, kContainer, kVehicle, kClothes, kText, kFragile, kDevice, kValuable, kBurden}) {
    size_t masculine = 0, feminine = 0;
    for (const Noun& noun : nouns()) {
      if (noun.is(kind)) ++(noun.gender == Gender::masculine ? masculine : feminine);
    }
    EXPECT_GE(masculine, 1u) << kind;
    EXPECT_GE(feminine, 1u) << kind;
  }
}

// A noun with a single predicate, or an adjective with few nouns, could not be split and still be learned.
TEST(Lexicon, CombinesEveryWordWithSeveral) {
  for (const Noun& noun : nouns()) {
    size_t partners = 0;
    for (const Adjective& adjective : adjectives()) {
      partners += describes(adjective, noun) && !adjective.special.attribute_only;
    }
    EXPECT_GE(partners, 2u) << noun.english;
  }
  for (const Adjective& adjective : adjectives()) {
    size_t partners = 0;
    for (const Noun& noun : nouns()) partners += describes(adjective, noun);
    EXPECT_GE(partners, 4u) << adjective.english;
  }
}

TEST(Lexicon, SaysWhichWordItDoesNotHave) {
  EXPECT_EQ(noun("dog").spanish, "perro");
  EXPECT_EQ(error_of([] { noun("unicorn"); }), "grammar: no noun 'unicorn', expected an English word of the lexicon");
  EXPECT_EQ(error_of([] { verb("gallop"); }), "grammar: no verb 'gallop', expected an English word of the lexicon");
}

}  // namespace
}  // namespace heed::grammar
