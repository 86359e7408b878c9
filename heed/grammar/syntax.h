// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tree of a sentence, the same for both languages, and how it becomes words. Which trees make sense is not decided
// here but where they are drawn (patterns.h).
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/grammar/lexicon.h"
#include "heed/grammar/sentence.h"

namespace heed::grammar {

enum class Tense { present, past };
enum class Determiner { none, the, a, this_one, that_one, my, our, some, many };
enum class Form { full, pronoun, gap };  // a gap is understood, not said: 'the dog that _ barked', 'he came and _ ate'
enum class Degree { plain, very, too };
enum class Preposition { in, on, under, near, behind, over };
enum class Conjunction { and_then, but, because, although };

struct Clause;

struct NounPhrase {
  const Noun* noun = nullptr;
  Number number = Number::singular;
  Determiner determiner = Determiner::the;
  int numeral = 0;  // 2 to 10, after the determiner or, with none, in its place
  const Adjective* adjective = nullptr;
  Form form = Form::full;
  std::shared_ptr<const Clause> relative = nullptr;  // its subject or its object is a gap
  std::vector<NounPhrase> and_also = {};             // at most one: 'the boy and the girl'
};

struct Place {
  Preposition preposition;
  NounPhrase phrase;
};

struct Clause {
  NounPhrase subject = {};
  const Verb* verb = nullptr;  // none: 'to be' with adjectives, or with a place
  Tense tense = Tense::past;
  bool negative = false;
  bool contracted = true;  // didn't, not 'did not'
  std::optional<NounPhrase> object = {};
  Degree degree = Degree::plain;
  std::vector<const Adjective*> adjectives = {};  // of 'to be': one, or two joined by 'and'
  std::optional<Place> place = {};
};

struct Tree {
  Clause main;
  bool question = false;
  std::optional<Conjunction> conjunction = {};
  std::optional<Clause> second = {};
};

// The same people or things again, as a pronoun or a gap.
NounPhrase again(const NounPhrase& phrase, Form form);

// What the phrase agrees with: two joined phrases are plural, and masculine unless both are feminine.
Number number_of(const NounPhrase& phrase);
Gender gender_of(const NounPhrase& phrase);

enum class Role { subject, object };
std::string_view english_pronoun(const NounPhrase& phrase, Role role);  // it, he, she, they, him, her, them

// Both sentences, and all that is known about them. No noun may be said twice: a pronoun is traced by its noun.
Sentence realise(const Tree& tree);

// A word of one side. Marks say what in the tree it comes from: source and target words with a mark in common
// are linked.
enum class Facet {
  determiner,
  numeral,
  adjective,
  noun,
  relative,
  phrases_and,
  verb,
  negation,
  preposition,
  degree,
  adjectives_and,
  conjunction,
  comma,
  end
};
struct Mark {
  const void* node;  // a tree, its first clause and its first phrase share an address, not facets
  Facet facet;
  Certainty certainty = Certainty::sure;
};
struct Piece {
  std::string text;
  std::vector<Mark> marks;
  Tag tag = Tag::punct;              // English only, as are
  const Noun* names = nullptr;       // the noun that it is,
  const Noun* stands_for = nullptr;  // or, for a pronoun, the noun that it means
};
std::vector<Piece> english_pieces(const Tree& tree);
std::vector<Piece> spanish_pieces(const Tree& tree);

}  // namespace heed::grammar
