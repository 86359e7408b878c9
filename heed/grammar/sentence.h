// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pair of sentences, with what the grammar knows about it: which word translates which, which noun each pronoun
// stands for, what each word is. Indices count tokens, as text::words_and_marks cuts them; zero is the first.
#include <string>
#include <string_view>
#include <vector>

namespace heed::grammar {

// The parts of speech of Universal Dependencies. 'didn't' is one token, and an auxiliary.
enum class Tag { adj, adp, adv, aux, cconj, det, noun, num, part, pron, punct, sconj, verb };

// Sure: the word is the translation. Possible: it only has a share in it, as 'did' has in 'cruzó', or a subject pronoun
// in a verb whose subject Spanish leaves out.
enum class Certainty { sure, possible };

struct Link {
  int source, target;
  Certainty certainty;
  bool operator==(const Link&) const = default;
};

struct Referent {
  int pronoun, noun;  // both in the source
  bool operator==(const Referent&) const = default;
};

// Two English words that meet in a sentence: a noun and what describes it (also through a pronoun: 'street', 'wide'),
// or a noun and the pronoun that stands for it ('street', 'it'). What a split holds out.
struct Combination {
  std::string_view noun, partner;
  bool operator==(const Combination&) const = default;
  bool operator<(const Combination& other) const {
    return noun != other.noun ? noun < other.noun : partner < other.partner;
  }
};

struct Sentence {
  std::vector<std::string> source, target;  // English, Spanish
  std::vector<Tag> tags;                    // one a source token
  std::vector<Link> alignment;              // by source, then target
  std::vector<Referent> referents;          // by pronoun
  std::vector<Combination> combinations;
};

std::string_view name(Tag tag);  // "NOUN"

std::string join(const std::vector<std::string>& words);        // with spaces
std::string pharaoh(const std::vector<Link>& alignment);        // "0-0 1-1 6p5": a p for what is only possible
std::string to_string(const std::vector<Referent>& referents);  // "6-1"
std::string to_string(const std::vector<Tag>& tags);            // "DET NOUN AUX VERB"

}  // namespace heed::grammar
