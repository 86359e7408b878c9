// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/split.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "heed/base/rng.h"
#include "heed/grammar/syntax.h"

namespace heed::grammar {

namespace {

constexpr uint64_t kStream = 1;        // of the seed; stream 0 draws the sentences
constexpr int kHeldOutPercent = 8;     // of the combinations of a kind, for dev and for test each
constexpr size_t kKeptOfEachWord = 4;  // a word may lose one combination in so many

std::vector<Combination> with_adjectives() {
  std::vector<Combination> all;
  for (const Noun& noun : nouns()) {
    for (const Adjective& adjective : adjectives()) {
      if (describes(adjective, noun)) all.push_back({noun.english, adjective.english});
    }
  }
  return all;
}

std::vector<Combination> with_pronouns() {
  std::vector<Combination> all;
  for (const Noun& noun : nouns()) {
    std::set<std::string_view> words;
    for (const Number number : {Number::singular, Number::plural}) {
      if (number == Number::plural && noun.special.singular_only) continue;
      const NounPhrase phrase{.noun = &noun, .number = number};
      for (const Role role : {Role::subject, Role::object}) words.insert(english_pronoun(phrase, role));
    }
    for (const std::string_view word : words) all.push_back({noun.english, word});
  }
  return all;
}

void shuffle(std::vector<Combination>& list, Rng& rng) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[rng.below(i)]);
}

// The Spanish form that a partner takes depends on the gender of the noun: each form has to be learned from others.
std::pair<std::string_view, Gender> form_of(const Combination& c) { return {c.partner, noun(c.noun).gender}; }

// Moves a share of the combinations out of training, as long as both words keep enough others.
void hold_out(std::vector<Combination> all, size_t per_noun, Rng& rng, std::set<Combination>& dev,
              std::set<Combination>& test) {
  std::map<std::string_view, size_t> of_noun, lost_by_noun;
  std::map<std::pair<std::string_view, Gender>, size_t> of_form, lost_by_form;
  for (const Combination& c : all) {
    ++of_noun[c.noun];
    of_form[form_of(c)] += !noun(c.noun).special.singular_only;  // the plural is the rarer
  }
  shuffle(all, rng);
  const size_t wanted = all.size() * kHeldOutPercent / 100;
  size_t held_out = 0;
  for (const Combination& c : all) {
    if (held_out == 2 * wanted) return;
    const bool noun_can = lost_by_noun[c.noun] < std::max(of_noun[c.noun] / kKeptOfEachWord, per_noun);
    const bool form_can = lost_by_form[form_of(c)] < of_form[form_of(c)] / kKeptOfEachWord;
    if (!noun_can || !form_can) continue;
    ++lost_by_noun[c.noun], ++lost_by_form[form_of(c)];
    (held_out++ % 2 == 0 ? dev : test).insert(c);
  }
}

}  // namespace

Split::Split(uint64_t seed) {
  Rng rng(seed, kStream);
  hold_out(with_adjectives(), 0, rng, dev_, test_);
  hold_out(with_pronouns(), 1, rng, dev_, test_);  // a noun has two to four pronouns, and may lose one
}

std::optional<Subset> Split::part_of(const Sentence& sentence) const {
  const auto& all = sentence.combinations;
  const bool dev = std::ranges::any_of(all, [this](const Combination& c) { return dev_.contains(c); });
  const bool test = std::ranges::any_of(all, [this](const Combination& c) { return test_.contains(c); });
  if (dev && test) return std::nullopt;
  return dev ? Subset::dev : test ? Subset::test : Subset::train;
}

}  // namespace heed::grammar
