// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "heed/grammar/english.h"
#include "heed/grammar/syntax.h"

namespace heed::grammar {

namespace {

constexpr Certainty kPossible = Certainty::possible;
constexpr std::array<std::string_view, 9> kNumerals{"two",   "three", "four", "five", "six",
                                                    "seven", "eight", "nine", "ten"};

std::string determiner(Determiner kind, Number number, std::string_view next) {
  const bool one = number == Number::singular;
  switch (kind) {
    case Determiner::the:
      return "the";
    case Determiner::a:
      return std::string(english::indefinite(next));
    case Determiner::this_one:
      return one ? "this" : "these";
    case Determiner::that_one:
      return one ? "that" : "those";
    case Determiner::my:
      return "my";
    case Determiner::our:
      return "our";
    case Determiner::some:
      return "some";
    case Determiner::many:
      return "many";
    default:
      return "";
  }
}

std::string_view word(Preposition preposition) {
  constexpr std::array<std::string_view, 6> kWords{"in", "on", "under", "near", "behind", "over"};
  return kWords[static_cast<size_t>(preposition)];
}

std::string_view word(Conjunction conjunction) {
  constexpr std::array<std::string_view, 4> kWords{"and", "but", "because", "although"};
  return kWords[static_cast<size_t>(conjunction)];
}

class Writer {
 public:
  std::vector<Piece> pieces;

  void sentence(const Tree& tree) {
    if (tree.question) {
      question(tree.main);
      add("?", Tag::punct, {{&tree, Facet::end}});
      return;
    }
    statement(tree.main);
    if (tree.second && tree.conjunction) {
      const Conjunction how = *tree.conjunction;
      if (how == Conjunction::but) add(",", Tag::punct, {{&tree, Facet::comma}});
      const bool coordinates = how == Conjunction::and_then || how == Conjunction::but;
      add(word(how), coordinates ? Tag::cconj : Tag::sconj, {{&tree, Facet::conjunction}});
      statement(*tree.second);
    }
    add(".", Tag::punct, {{&tree, Facet::end}});
  }

 private:
  void add(std::string_view text, Tag tag, std::vector<Mark> marks) {
    pieces.push_back({.text = std::string(text), .marks = std::move(marks), .tag = tag});
  }

  void statement(const Clause& clause) {
    subject(clause);
    if (clause.verb) {
      verb_group(clause);
    } else {
      to_be(clause);
    }
    rest(clause);
  }

  // Did the boy eat the apple? Is the street wide?
  void question(const Clause& clause) {
    if (clause.verb) {
      auxiliary(clause);
      subject(clause);
      add(english::base(*clause.verb), Tag::verb, {{&clause, Facet::verb}});
    } else {
      to_be(clause);
      subject(clause);
    }
    rest(clause);
  }

  void subject(const Clause& clause) {
    if (clause.subject.form == Form::pronoun) {
      pronoun(clause.subject, Role::subject, {{&clause, Facet::verb, kPossible}});  // Spanish says it with the verb
    } else {
      phrase(clause.subject);
    }
  }

  void pronoun(const NounPhrase& meant, Role role, std::vector<Mark> marks) {
    add(english_pronoun(meant, role), Tag::pron, std::move(marks));
    pieces.back().stands_for = meant.noun;
  }

  // What follows the verb, or the subject of a question.
  void rest(const Clause& clause) {
    if (clause.verb) {
      const std::string_view preposition = english::preposition(*clause.verb);
      if (!preposition.empty())
        add(preposition, Tag::adp, {{&clause, Facet::preposition}, {&clause, Facet::verb, kPossible}});
    }
    if (clause.object) {
      if (clause.object->form == Form::pronoun) {
        pronoun(*clause.object, Role::object, {{&*clause.object, Facet::noun}});
      } else {
        phrase(*clause.object);
      }
    }
    complement(clause);
    if (clause.place) {
      add(word(clause.place->preposition), Tag::adp, {{&*clause.place, Facet::preposition}});
      phrase(clause.place->phrase);
    }
  }

  void complement(const Clause& clause) {
    if (clause.degree != Degree::plain) {
      add(clause.degree == Degree::very ? "very" : "too", Tag::adv, {{&clause, Facet::degree}});
    }
    for (const Adjective* const& adjective : clause.adjectives) {
      if (&adjective != &clause.adjectives.front()) add("and", Tag::cconj, {{&clause, Facet::adjectives_and}});
      add(adjective->english, Tag::adj, {{static_cast<const void*>(&adjective), Facet::adjective}});
    }
  }

  void verb_group(const Clause& clause) {
    const Verb& verb = *clause.verb;
    if (clause.negative) {
      auxiliary(clause);
      add(english::base(verb), Tag::verb, {{&clause, Facet::verb}});
    } else if (clause.tense == Tense::past) {
      add(english::past(verb), Tag::verb, {{&clause, Facet::verb}});
    } else {
      const bool one = number_of(clause.subject) == Number::singular;
      const std::string base(english::base(verb));
      add(one ? english::third_person(base) : base, Tag::verb, {{&clause, Facet::verb}});
    }
  }

  // do, does or did, and 'not' if there is one.
  void auxiliary(const Clause& clause) {
    const bool one = number_of(clause.subject) == Number::singular;
    const char* word = clause.tense == Tense::past ? "did" : one ? "does" : "do";
    with_not(word, clause, {{&clause, Facet::verb, kPossible}});
  }

  void to_be(const Clause& clause) {
    const bool one = number_of(clause.subject) == Number::singular;
    const char* word = clause.tense == Tense::past ? (one ? "was" : "were") : (one ? "is" : "are");
    with_not(word, clause, {{&clause, Facet::verb}});
  }

  void with_not(const std::string& auxiliary, const Clause& clause, std::vector<Mark> marks) {
    if (clause.negative && clause.contracted) {
      marks.push_back({&clause, Facet::negation});
      add(auxiliary + "n't", Tag::aux, std::move(marks));
      return;
    }
    add(auxiliary, Tag::aux, std::move(marks));
    if (clause.negative) add("not", Tag::part, {{&clause, Facet::negation}});
  }

  void phrase(const NounPhrase& np) {
    if (np.form == Form::gap) return;
    const std::string noun = english::noun_form(*np.noun, np.number);
    if (np.determiner != Determiner::none) {
      const std::string_view next = np.adjective ? np.adjective->english : std::string_view(noun);
      add(determiner(np.determiner, np.number, next), Tag::det, {{&np, Facet::determiner}});
    }
    if (np.numeral) add(kNumerals.at(static_cast<size_t>(np.numeral - 2)), Tag::num, {{&np, Facet::numeral}});
    if (np.adjective) add(np.adjective->english, Tag::adj, {{&np, Facet::adjective}});
    add(noun, Tag::noun, {{&np, Facet::noun}});
    pieces.back().names = np.noun;
    if (np.relative) {
      add(np.noun->is(trait::kHuman) ? "who" : "that", Tag::pron, {{&np, Facet::relative}});
      statement(*np.relative);
    }
    for (const NounPhrase& other : np.and_also) {
      add("and", Tag::cconj, {{&np, Facet::phrases_and}});
      phrase(other);
    }
  }
};

}  // namespace

std::vector<Piece> english_pieces(const Tree& tree) {
  Writer writer;
  writer.sentence(tree);
  return std::move(writer.pieces);
}

}  // namespace heed::grammar
