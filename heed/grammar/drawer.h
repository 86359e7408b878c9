// SPDX-License-Identifier: Apache-2.0
#pragma once
// Draws words and phrases that go together. One Drawer serves one sentence: it names no noun twice.
#include <optional>
#include <string_view>
#include <vector>

#include "heed/base/rng.h"
#include "heed/grammar/syntax.h"

namespace heed::grammar {

enum class Reference { any, definite };  // definite: the, this, that, my, our; neither 'a' nor 'some'

struct PhraseOptions {
  Reference reference = Reference::any;
  std::optional<Number> number = {};  // as it comes
  std::optional<Gender> gender = {};
  int adjective_percent = 30;
  std::string_view not_scale = {};  // no adjective of this scale, as something else is said on it
};

class Drawer {
 public:
  explicit Drawer(Rng& rng) : rng_(rng) {}

  bool chance(int percent) { return rng_.below(100) < static_cast<uint64_t>(percent); }
  template <typename List>
  const auto& pick(const List& list) {
    return *(std::begin(list) + static_cast<std::ptrdiff_t>(rng_.below(std::size(list))));
  }

  // A noun with one of these traits that was not drawn before; none if all were.
  const Noun* noun(Traits any_of, std::optional<Gender> gender = {});
  const Adjective* adjective_for(const Noun& noun, std::string_view not_scale);
  std::optional<NounPhrase> phrase(Traits any_of, const PhraseOptions& options = {});

  Tense tense() { return chance(65) ? Tense::past : Tense::present; }
  // Negative or not, contracted or not.
  void polarity(Clause& clause, int negative_percent);

 private:
  Number number_for(const Noun& noun, const PhraseOptions& options);
  void determine(NounPhrase& phrase, Reference reference);
  void describe(NounPhrase& phrase, const PhraseOptions& options);

  Rng& rng_;
  std::vector<const Noun*> used_;
};

// 'The boys read the book' is present or past: where English does not tell, the past is meant.
void settle_tense(Clause& clause);

}  // namespace heed::grammar
