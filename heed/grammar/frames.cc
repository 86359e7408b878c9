// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/frames.h"

#include <string_view>

namespace heed::grammar {

namespace {

using namespace trait;

// The entries of words written 'tired, sick, weak'.
template <typename Entry>
std::vector<const Entry*> entries(std::string_view list, const Entry& (*find)(std::string_view)) {
  std::vector<const Entry*> found;
  while (!list.empty()) {
    const size_t comma = list.find(", ");
    found.push_back(&find(list.substr(0, comma)));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 2);
  }
  return found;
}

std::vector<const Verb*> verbs_of(std::string_view list) { return entries<Verb>(list, verb); }
std::vector<const Adjective*> adjectives_of(std::string_view list) { return entries<Adjective>(list, adjective); }

struct ReasonRow {
  Ground ground;
  std::string_view verb;
  Traits subject, object;
  std::string_view of_subject, of_object;
};

constexpr Ground kHinders = Ground::hindrance, kMoves = Ground::motive;
constexpr Traits kDear = kClothes | kVehicle | kFurniture | kDevice | kInstrument | kValuable;

constexpr ReasonRow kReasons[] = {
    {kHinders, "cross", kHuman | kBeast, kWay, "tired, sick, weak, scared, nervous, lazy",
     "wide, long, dangerous, dirty, wet"},
    {kHinders, "cross", kHuman | kBeast, kWater, "tired, sick, weak, scared, nervous, lazy",
     "wide, deep, dangerous, cold"},
    {kHinders, "cross", kVehicle, kWay, "heavy, slow", "narrow, wet, dangerous"},
    {kHinders, "climb", kHuman | kClimber, kHeight, "tired, sick, weak, scared, lazy", "high, dangerous"},
    {kHinders, "eat", kAnimate, kFood, "sick, tired, nervous, sad, scared", "hard, cold, hot, salty, bitter, rotten"},
    {kHinders, "drink", kAnimate, kDrink, "sick, tired, nervous", "cold, hot, bitter, sweet"},
    {kHinders, "carry", kHuman | kBurden, kContainer | kFurniture, "weak, tired, sick, lazy, old", "heavy, big"},
    {kHinders, "push", kHuman | kBurden, kVehicle | kFurniture, "weak, tired, sick, lazy", "heavy, big, dirty"},
    {kHinders, "swim in", kHuman | kBeast, kWater, "tired, scared, weak, sick", "cold, deep, dirty, dangerous"},
    {kHinders, "sleep on", kHuman | kBeast, kSeat, "nervous, scared, hungry", "dirty, wet, small, broken"},
    {kHinders, "enter", kAnimate, kBuilding | kRoom, "scared, nervous, angry", "dark, dirty, full, cold"},
    {kHinders, "read", kHuman, kText, "tired, busy, nervous, lazy", "long, boring, difficult"},
    {kHinders, "translate", kHuman, kText, "tired, busy, lazy", "long, boring, difficult"},
    {kHinders, "buy", kHuman, kDear, "poor", "expensive, ugly, heavy, noisy"},
    {kHinders, "drive", kHuman, kDriven, "tired, nervous, young, sick", "slow, dirty, noisy"},
    {kHinders, "open", kHuman, kOpening | kContainer, "weak, scared, nervous", "heavy, dirty, thick"},
    {kHinders, "visit", kHuman, kTown | kBuilding, "busy, tired, sick", "boring, ugly, dark"},
    {kHinders, "break", kMissile, kFragile, "light", "thick"},
    {kHinders, "wash", kHuman, kVehicle | kFragile, "busy, tired, lazy", "big, fragile"},
    {kMoves, "eat", kAnimate, kFood, "hungry", "delicious, sweet"},
    {kMoves, "drink", kAnimate, kDrink, "thirsty", "cold, delicious, sweet"},
    {kMoves, "cross", kHuman | kBeast, kWay, "brave, hungry, thirsty", "safe, short, narrow, clean"},
    {kMoves, "cross", kHuman | kBeast, kWater, "brave, strong, thirsty", "clean, beautiful, small"},
    {kMoves, "swim in", kHuman | kBeast, kWater, "happy, brave, strong", "clean, beautiful"},
    {kMoves, "sleep on", kHuman | kBeast, kSeat, "tired, sick, lazy, weak", "soft, comfortable, clean"},
    {kMoves, "enter", kAnimate, kBuilding | kRoom, "hungry, thirsty, tired, brave", "open, empty, famous"},
    {kMoves, "read", kHuman, kText, "bored, intelligent", "interesting, short, important, easy"},
    {kMoves, "buy", kHuman, kDear, "rich", "cheap, beautiful, new, modern, comfortable, valuable"},
    {kMoves, "sell", kHuman, kDear, "poor, intelligent", "ugly, noisy, slow, broken, valuable"},
    {kMoves, "visit", kHuman, kTown | kBuilding | kLand, "bored", "beautiful, famous, interesting"},
    {kMoves, "clean", kHuman, kRoom | kFurniture | kFragile, "bored, nervous, hardworking", "dirty"},
    {kMoves, "repair", kHuman, kDevice | kInstrument, "bored, hardworking, intelligent", "broken"},
    {kMoves, "hide", kAnimal, kFood, "scared, nervous, intelligent", "delicious"},
    {kMoves, "break", kMissile, kFragile, "heavy", "fragile, thin"},
    {kMoves, "bite", kAnimal, kAnimate, "angry, scared, nervous, hungry", "angry, nervous, slow"},
    {kMoves, "follow", kAnimate, kAnimate, "hungry, bored, scared", "rich, famous, brave"},
};

struct ErrandRow {
  std::string_view verb;
  Traits subject, thing;
  Preposition preposition;
  Traits place;
  std::string_view to_thing, to_place;
};

constexpr Preposition kIn = Preposition::in, kOn = Preposition::on, kUnder = Preposition::under;
constexpr Preposition kNear = Preposition::near;

constexpr ErrandRow kErrands[] = {
    {"find", kHuman, kFood | kText | kClothes, kIn, kContainer, "eat, cook, read, translate, wash", "close"},
    {"find", kHuman, kText, kIn, kRoom, "read, translate, send", "clean, paint"},
    {"find", kHuman, kFood, kIn, kRoom, "eat, cook", ""},
    {"find", kHuman, kFood | kText, kOn, kTop, "eat, cook, read, translate", "repair"},
    {"find", kHuman, kFood | kText, kUnder, kFurniture, "eat, read, send", "repair"},
    {"find", kHuman, kDriven, kNear, kBuilding | kLand, "drive, wash, repair", "visit"},
    {"see", kHuman, kAnimal, kNear, kWay | kWater, "feed, follow", "cross"},
    {"see", kHuman, kAnimal, kNear, kOpening, "feed, follow, help", "open, close"},
    {"find", kBeast, kFood, kUnder, kFurniture, "eat", ""},
    {"find", kAnimal, kFood, kIn, kLand, "eat", ""},
    {"put", kHuman, kFood | kText | kClothes | kValuable, kIn, kContainer, "", "close"},
    {"put", kHuman, kFood | kText | kTool, kOn, kTop, "", "repair"},
    {"leave", kHuman, kFood | kText | kTool | kValuable, kIn, kContainer, "", "close"},
    {"hide", kHuman, kText | kValuable, kIn, kContainer, "", "close"},
};

struct SequenceRow {
  Conjunction conjunction;
  std::string_view first, second;
  bool second_negative = false;
};

constexpr Conjunction kAnd = Conjunction::and_then, kBecause = Conjunction::because;

constexpr SequenceRow kSequences[] = {
    {kAnd, "buy, find, steal, choose, bring", "eat, cook, cut, wash, repair, read, translate, use, send, burn, drive"},
    {kAnd, "see, find, hear, look for", "greet, help, hug, kiss, call"},
    {kAnd, "see, find, look for", "feed, help"},
    {kBecause, "buy, steal, look for, choose", "need, want"},
    {kBecause, "sell, burn", "need, want", true},
    {kBecause, "sell, burn", "hate"},
    {kBecause, "visit, help, hug, kiss, feed, follow", "love"},
};

}  // namespace

std::span<const ReasonFrame> reason_frames() {
  static const std::vector<ReasonFrame> frames = [] {
    std::vector<ReasonFrame> all;
    for (const ReasonRow& row : kReasons) {
      all.push_back({row.ground, &verb(row.verb), row.subject, row.object, adjectives_of(row.of_subject),
                     adjectives_of(row.of_object)});
    }
    return all;
  }();
  return frames;
}

std::span<const ErrandFrame> errand_frames() {
  static const std::vector<ErrandFrame> frames = [] {
    std::vector<ErrandFrame> all;
    for (const ErrandRow& row : kErrands) {
      all.push_back({&verb(row.verb), row.subject, row.thing, row.preposition, row.place, verbs_of(row.to_thing),
                     verbs_of(row.to_place)});
    }
    return all;
  }();
  return frames;
}

std::span<const SequenceFrame> sequence_frames() {
  static const std::vector<SequenceFrame> frames = [] {
    std::vector<SequenceFrame> all;
    for (const SequenceRow& row : kSequences) {
      all.push_back({row.conjunction, verbs_of(row.first), verbs_of(row.second), row.second_negative});
    }
    return all;
  }();
  return frames;
}

}  // namespace heed::grammar
