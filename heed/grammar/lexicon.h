// SPDX-License-Identifier: Apache-2.0
#pragma once
// The words of the built-in grammar: plain tables, English beside Spanish. What a noun *is* (its traits) decides which
// adjectives and verbs go with it, so that a sentence makes sense, and so that a predicate tells which noun it is
// about. Inflected forms: english.h, spanish.h.
#include <cstdint>
#include <span>
#include <string_view>

namespace heed::grammar {

enum class Gender { masculine, feminine };
enum class Number { singular, plural };

using Traits = uint64_t;  // a set of the bits below

namespace trait {

inline constexpr Traits kMale = 1ull << 0, kFemale = 1ull << 1;      // people, whom English calls he and she
inline constexpr Traits kKin = 1ull << 2;                            // people who belong to somebody: 'my aunt'
inline constexpr Traits kBeast = 1ull << 3, kBird = 1ull << 4;       // animals that walk, and that fly
inline constexpr Traits kBurden = 1ull << 5, kClimber = 1ull << 35;  // what animals can do: carry loads, climb
inline constexpr Traits kProduce = 1ull << 6, kMeal = 1ull << 7, kSolid = 1ull << 8, kFood = 1ull << 9;
inline constexpr Traits kDrink = 1ull << 10;
inline constexpr Traits kWay = 1ull << 11, kWater = 1ull << 12, kHeight = 1ull << 13, kLand = 1ull << 14;
inline constexpr Traits kBuilding = 1ull << 15, kRoom = 1ull << 16, kTown = 1ull << 17, kOpening = 1ull << 18;
inline constexpr Traits kFurniture = 1ull << 19, kSeat = 1ull << 20, kTop = 1ull << 21, kContainer = 1ull << 22;
inline constexpr Traits kVehicle = 1ull << 23, kDriven = 1ull << 24;
inline constexpr Traits kClothes = 1ull << 25, kText = 1ull << 26, kFragile = 1ull << 27, kDevice = 1ull << 28;
inline constexpr Traits kInstrument = 1ull << 29, kTool = 1ull << 30, kMissile = 1ull << 31;
inline constexpr Traits kValuable = 1ull << 32, kPlant = 1ull << 33, kRoofed = 1ull << 34;
inline constexpr Traits kAdult = 1ull << 36, kYouth = 1ull << 37, kRenown = 1ull << 38;  // may be old, young, great
inline constexpr Traits kSavoury = 1ull << 39;

inline constexpr Traits kHuman = kMale | kFemale, kAnimal = kBeast | kBird;
inline constexpr Traits kAnimate = kHuman | kAnimal;
inline constexpr Traits kAny = ~0ull;

}  // namespace trait

struct Noun {
  struct Special {
    std::string_view plural = {};  // where the rule does not give it
    bool singular_only = false;    // and never with 'a': 'the milk', 'my mother'
    bool stressed_a = false;       // feminine, but 'el águila', 'un águila'
  };
  std::string_view english, spanish;  // in the singular
  Gender gender;                      // of the Spanish word
  Traits traits;
  Special special = {};

  bool is(Traits any_of) const { return (traits & any_of) != 0; }
};

enum class Copula { ser, estar };
enum class Position { after_noun, before_noun };  // in Spanish

struct Adjective {
  struct Special {
    bool gradable = true;  // goes with 'very' and 'too'
    Position position = Position::after_noun;
    bool attribute_only = false;         // 'the first dog', never 'the dog is first'
    std::string_view short_form = {};    // before a masculine noun in the singular: buen, mal, primer
    bool short_before_feminine = false;  // and before a feminine one: 'la gran ciudad'
    std::string_view feminine = {};      // where the rules do not give them
    std::string_view plural = {};
  };
  std::string_view english, spanish;  // Spanish: masculine singular, as a predicate
  Traits describes;
  Copula copula;
  std::string_view scale;  // wide and narrow share one: a noun gets at most one word of a scale
  Special special = {};
};

enum class Aspect { event, state };  // the past of an event is the preterite, of a state the imperfect

// Either verb may bring a preposition for its object: 'look for', 'entrar en'.
struct Verb {
  struct Special {
    std::string_view past = {};       // where the rule does not give it
    std::string_view present = {};    // cierr-a: stem-changing verbs
    std::string_view preterite = {};  // pid-ió
    bool strong = false;              // the preterite stem takes -o, -ieron: puso, pusieron
    Aspect aspect = Aspect::event;
    std::string_view scale = {};  // words of it do not describe the object: nobody opens an open door
  };
  std::string_view english, spanish;  // base form and infinitive
  Traits subject;
  Traits object = 0;  // 0: intransitive
  Special special = {};
};

std::span<const Noun> nouns();
std::span<const Adjective> adjectives();
std::span<const Verb> verbs();

// The entry of an English word; throws Error if there is none.
const Noun& noun(std::string_view english);
const Adjective& adjective(std::string_view english);
const Verb& verb(std::string_view english);

inline bool describes(const Adjective& adjective, const Noun& noun) { return noun.is(adjective.describes); }

}  // namespace heed::grammar
