// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "heed/grammar/spanish.h"
#include "heed/grammar/syntax.h"

namespace heed::grammar {

namespace {

constexpr Certainty kPossible = Certainty::possible;
constexpr std::array<std::string_view, 9> kNumerals{"dos",   "tres", "cuatro", "cinco", "seis",
                                                    "siete", "ocho", "nueve",  "diez"};

using Forms = std::array<std::string_view, 4>;  // masculine, feminine; then both in the plural

std::string_view form(const Forms& forms, spanish::Agreement agreement) {
  return forms[(agreement.number == Number::plural ? 2u : 0u) + (agreement.gender == Gender::feminine ? 1u : 0u)];
}

constexpr Forms kThe{"el", "la", "los", "las"};
constexpr Forms kA{"un", "una", "unos", "unas"};
constexpr Forms kObjectPronoun{"lo", "la", "los", "las"};

const Forms& forms(Determiner determiner) {
  static constexpr Forms kThis{"este", "esta", "estos", "estas"}, kThat{"ese", "esa", "esos", "esas"};
  static constexpr Forms kMy{"mi", "mi", "mis", "mis"}, kOur{"nuestro", "nuestra", "nuestros", "nuestras"};
  static constexpr Forms kSome{"algún", "alguna", "algunos", "algunas"};
  static constexpr Forms kMany{"mucho", "mucha", "muchos", "muchas"}, kNone{};
  switch (determiner) {
    case Determiner::the:
      return kThe;
    case Determiner::a:
      return kA;
    case Determiner::this_one:
      return kThis;
    case Determiner::that_one:
      return kThat;
    case Determiner::my:
      return kMy;
    case Determiner::our:
      return kOur;
    case Determiner::some:
      return kSome;
    case Determiner::many:
      return kMany;
    default:
      return kNone;
  }
}

struct PrepositionWords {
  std::string_view first, second;  // 'cerca de'
};

PrepositionWords words(Preposition preposition) {
  constexpr std::array<PrepositionWords, 6> kWords{
      {{"en", ""}, {"sobre", ""}, {"debajo", "de"}, {"cerca", "de"}, {"detrás", "de"}, {"sobre", ""}}};
  return kWords[static_cast<size_t>(preposition)];
}

spanish::Agreement agreement_of(const NounPhrase& phrase) { return {gender_of(phrase), number_of(phrase)}; }

bool before_noun(const Adjective* adjective) {
  return adjective && adjective->special.position == Position::before_noun;
}

// Feminine nouns that begin with a stressed a take el and un, but only right before them: el agua, la primera agua.
std::string_view determiner(const NounPhrase& np) {
  const bool adjacent = np.numeral == 0 && !before_noun(np.adjective);
  spanish::Agreement agreement{np.noun->gender, np.number};
  const bool article = np.determiner == Determiner::the || np.determiner == Determiner::a;
  if (article && np.noun->special.stressed_a && adjacent && np.number == Number::singular) {
    agreement.gender = Gender::masculine;
  }
  return form(forms(np.determiner), agreement);
}

spanish::Tense tense_of(const Clause& clause) {
  if (clause.tense == Tense::present) return spanish::Tense::present;
  const bool state = !clause.verb || clause.verb->special.aspect == Aspect::state;
  return state ? spanish::Tense::imperfect : spanish::Tense::preterite;
}

Copula copula_of(const Clause& clause) {
  return clause.adjectives.empty() ? Copula::estar : clause.adjectives.front()->copula;  // a place takes estar
}

class Writer {
 public:
  std::vector<Piece> pieces;

  void sentence(const Tree& tree) {
    if (tree.question) {
      add("¿", {{&tree, Facet::end, kPossible}, {&tree.main, Facet::verb, kPossible}});
      question(tree.main);
      add("?", {{&tree, Facet::end}});
      return;
    }
    statement(tree.main);
    if (tree.second) second(tree);
    add(".", {{&tree, Facet::end}});
  }

 private:
  void add(std::string_view text, std::vector<Mark> marks) {
    pieces.push_back({.text = std::string(text), .marks = std::move(marks)});
  }

  // 'y' becomes 'e' before the sound of i: what follows has to be known.
  void add_and(Mark mark, const std::vector<Piece>& next) {
    add(spanish::conjunction_and(next.front().text), {mark});
    pieces.insert(pieces.end(), next.begin(), next.end());
  }

  void second(const Tree& tree) {
    if (!tree.second || !tree.conjunction) return;
    Writer rest;
    rest.statement(*tree.second);
    switch (*tree.conjunction) {
      case Conjunction::and_then:
        return add_and({&tree, Facet::conjunction}, rest.pieces);
      case Conjunction::but:
        add(",", {{&tree, Facet::comma}});
        add("pero", {{&tree, Facet::conjunction}});
        break;
      case Conjunction::because:
        add("porque", {{&tree, Facet::conjunction}});
        break;
      case Conjunction::although:
        add("aunque", {{&tree, Facet::conjunction}});
        break;
    }
    pieces.insert(pieces.end(), rest.pieces.begin(), rest.pieces.end());
  }

  void statement(const Clause& clause) {
    if (clause.subject.form == Form::full) phrase(clause.subject);
    verb_group(clause);
    complement(clause);
    object(clause);
    place(clause);
  }

  // ¿Es ancha la calle? 'To be' comes first; another verb stays where it is, and only the tone asks.
  void question(const Clause& clause) {
    if (clause.verb) {
      statement(clause);
    } else {
      inverted(clause);
    }
  }

  void inverted(const Clause& clause) {
    verb_group(clause);
    complement(clause);
    phrase(clause.subject);
    place(clause);
  }

  // [no] [lo, la, los, las] verb
  void verb_group(const Clause& clause) {
    if (clause.negative) add("no", {{&clause, Facet::negation}});
    if (clause.object && clause.object->form == Form::pronoun) {
      add(form(kObjectPronoun, agreement_of(*clause.object)), {{&*clause.object, Facet::noun}});
    }
    const Number number = number_of(clause.subject);
    if (clause.verb) {
      add(spanish::conjugate(*clause.verb, tense_of(clause), number), {{&clause, Facet::verb}});
    } else {
      add(spanish::copula(copula_of(clause), tense_of(clause), number), {{&clause, Facet::verb}});
    }
  }

  void complement(const Clause& clause) {
    if (clause.degree != Degree::plain) {
      add(clause.degree == Degree::very ? "muy" : "demasiado", {{&clause, Facet::degree}});
    }
    const spanish::Agreement agreement = agreement_of(clause.subject);
    for (const Adjective* const& adjective : clause.adjectives) {
      const Piece piece{.text = spanish::adjective_form(*adjective, agreement),
                        .marks = {{static_cast<const void*>(&adjective), Facet::adjective}}};
      if (&adjective == &clause.adjectives.front()) {
        pieces.push_back(piece);
      } else {
        add_and({&clause, Facet::adjectives_and}, {piece});
      }
    }
  }

  void object(const Clause& clause) {
    if (clause.object && clause.object->form == Form::full) object_phrase(clause, *clause.object);
  }

  // People and animals as objects take 'a', unless the verb brings a preposition of its own.
  void object_phrase(const Clause& clause, const NounPhrase& np) {
    const std::string own(spanish::preposition(*clause.verb));
    if (!own.empty()) {
      phrase(np, Piece{own, {{&clause, Facet::preposition}, {&clause, Facet::verb, kPossible}}});
    } else if (np.noun->is(trait::kAnimate)) {
      phrase(np, Piece{"a", {{&np, Facet::noun, kPossible}, {&clause, Facet::verb, kPossible}}});
    } else {
      single_phrase(np);
    }
    for (const NounPhrase& other : np.and_also) {
      Writer rest;
      rest.object_phrase(clause, other);
      add_and({&np, Facet::phrases_and}, rest.pieces);
    }
  }

  void place(const Clause& clause) {
    if (!clause.place) return;
    const auto [first, second] = words(clause.place->preposition);
    if (second.empty()) {
      phrase(clause.place->phrase, Piece{std::string(first), {{&*clause.place, Facet::preposition}}});
    } else {
      add(first, {{&*clause.place, Facet::preposition}});
      phrase(clause.place->phrase, Piece{std::string(second), {{&*clause.place, Facet::preposition, kPossible}}});
    }
  }

  // A phrase behind a preposition; a + el and de + el are one word.
  void phrase(const NounPhrase& np, Piece preposition) {
    Writer rest;
    rest.single_phrase(np);
    Piece& article = rest.pieces.front();
    const bool contracts = article.text == "el" && (preposition.text == "a" || preposition.text == "de");
    if (contracts) {
      article.text = preposition.text == "a" ? "al" : "del";
      for (const Mark& mark : preposition.marks) article.marks.push_back({mark.node, mark.facet, kPossible});
    } else {
      pieces.push_back(std::move(preposition));
    }
    pieces.insert(pieces.end(), rest.pieces.begin(), rest.pieces.end());
  }

  void phrase(const NounPhrase& np) {
    if (np.form == Form::gap) return;
    single_phrase(np);
    for (const NounPhrase& other : np.and_also) {
      Writer rest;
      rest.phrase(other);
      add_and({&np, Facet::phrases_and}, rest.pieces);
    }
  }

  void single_phrase(const NounPhrase& np) {
    const spanish::Agreement agreement{np.noun->gender, np.number};
    if (np.determiner != Determiner::none) add(determiner(np), {{&np, Facet::determiner}});
    if (np.numeral) add(kNumerals.at(static_cast<size_t>(np.numeral - 2)), {{&np, Facet::numeral}});
    if (before_noun(np.adjective)) {
      add(spanish::adjective_before_noun(*np.adjective, agreement), {{&np, Facet::adjective}});
    }
    add(spanish::noun_form(*np.noun, np.number), {{&np, Facet::noun}});
    if (np.adjective && !before_noun(np.adjective)) {
      add(spanish::adjective_form(*np.adjective, agreement), {{&np, Facet::adjective}});
    }
    if (np.relative) relative(np, *np.relative);
  }

  // el perro que comió el pan; el pan que comió el perro
  void relative(const NounPhrase& head, const Clause& clause) {
    add("que", {{&head, Facet::relative}});
    if (clause.subject.form == Form::gap) {
      statement(clause);
    } else {
      inverted(clause);
    }
  }
};

}  // namespace

std::vector<Piece> spanish_pieces(const Tree& tree) {
  Writer writer;
  writer.sentence(tree);
  return std::move(writer.pieces);
}

}  // namespace heed::grammar
