// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/syntax.h"

#include <algorithm>
#include <cassert>

namespace heed::grammar {

namespace {

std::optional<Certainty> link(const Piece& source, const Piece& target) {
  std::optional<Certainty> best;
  for (const Mark& s : source.marks) {
    for (const Mark& t : target.marks) {
      if (s.node != t.node || s.facet != t.facet) continue;
      const int sure = (s.certainty == Certainty::sure) + (t.certainty == Certainty::sure);
      if (sure == 2) return Certainty::sure;
      if (sure == 1) best = Certainty::possible;  // 'did' and 'cruzó'; but not 'did' and the 'a' of its object
    }
  }
  return best;
}

std::vector<Link> align(const std::vector<Piece>& source, const std::vector<Piece>& target) {
  std::vector<Link> links;
  for (size_t i = 0; i < source.size(); ++i) {
    for (size_t j = 0; j < target.size(); ++j) {
      const auto certainty = link(source[i], target[j]);
      if (certainty) links.push_back({static_cast<int>(i), static_cast<int>(j), *certainty});
    }
  }
  return links;
}

std::vector<Referent> trace_pronouns(const std::vector<Piece>& source) {
  std::vector<Referent> referents;
  for (size_t i = 0; i < source.size(); ++i) {
    const Noun* meant = source[i].stands_for;
    if (!meant) continue;
    const auto said = std::ranges::find_if(source, [&](const Piece& piece) { return piece.names == meant; });
    assert(said != source.end());
    referents.push_back({static_cast<int>(i), static_cast<int>(said - source.begin())});
  }
  return referents;
}

std::vector<std::string> texts(const std::vector<Piece>& pieces) {
  std::vector<std::string> words;
  words.reserve(pieces.size());
  for (const Piece& piece : pieces) words.push_back(piece.text);
  return words;
}

// No sentence begins with a letter outside ASCII.
void capitalise(std::vector<std::string>& words) {
  std::string& first = words.front() == "¿" ? words[1] : words.front();
  first.front() = static_cast<char>(first.front() - 'a' + 'A');
}

void combine(const Clause& clause, std::vector<Combination>& out);

void combine(const NounPhrase& phrase, Role role, std::vector<Combination>& out) {
  if (phrase.form == Form::pronoun) out.push_back({phrase.noun->english, english_pronoun(phrase, role)});
  if (phrase.adjective) out.push_back({phrase.noun->english, phrase.adjective->english});
  if (phrase.relative) combine(*phrase.relative, out);
  for (const NounPhrase& other : phrase.and_also) combine(other, role, out);
}

void combine(const Clause& clause, std::vector<Combination>& out) {
  combine(clause.subject, Role::subject, out);
  for (const Adjective* adjective : clause.adjectives) {
    out.push_back({clause.subject.noun->english, adjective->english});
  }
  if (clause.object) combine(*clause.object, Role::object, out);
  if (clause.place) combine(clause.place->phrase, Role::object, out);
}

}  // namespace

NounPhrase again(const NounPhrase& phrase, Form form) {
  NounPhrase copy{.noun = phrase.noun, .number = phrase.number, .form = form};
  for (const NounPhrase& other : phrase.and_also) copy.and_also.push_back(again(other, form));
  return copy;
}

Number number_of(const NounPhrase& phrase) { return phrase.and_also.empty() ? phrase.number : Number::plural; }

Gender gender_of(const NounPhrase& phrase) {
  for (const NounPhrase& other : phrase.and_also) {
    if (gender_of(other) == Gender::masculine) return Gender::masculine;
  }
  return phrase.noun->gender;
}

std::string_view english_pronoun(const NounPhrase& phrase, Role role) {
  const bool subject = role == Role::subject;
  if (number_of(phrase) == Number::plural) return subject ? "they" : "them";
  if (phrase.noun->is(trait::kMale)) return subject ? "he" : "him";
  if (phrase.noun->is(trait::kFemale)) return subject ? "she" : "her";
  return "it";
}

Sentence realise(const Tree& tree) {
  const std::vector<Piece> source = english_pieces(tree), target = spanish_pieces(tree);
  Sentence sentence{.source = texts(source),
                    .target = texts(target),
                    .tags = {},
                    .alignment = align(source, target),
                    .referents = trace_pronouns(source),
                    .combinations = {}};
  capitalise(sentence.source);
  capitalise(sentence.target);
  for (const Piece& piece : source) sentence.tags.push_back(piece.tag);
  combine(tree.main, sentence.combinations);
  if (tree.second) combine(*tree.second, sentence.combinations);
  return sentence;
}

}  // namespace heed::grammar
