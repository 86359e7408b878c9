// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a corpus of the grammar is like, and how far one gets with pronouns without understanding them.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "heed/grammar/sentence.h"

namespace heed::grammar {

// How often a rule of thumb finds the noun that a pronoun stands for.
struct Guesses {
  int64_t pronouns = 0;
  int64_t first = 0;     // the first noun of the sentence
  int64_t nearest = 0;   // the last noun before the pronoun
  int64_t agreeing = 0;  // the last one before it that it could stand for, by number and sex
  void add(const Guesses& other);
};

class Statistics {
 public:
  void add(const Sentence& sentence);

  int64_t sentences() const { return sentences_; }
  int64_t with_pronoun() const { return with_pronoun_; }
  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return target_tokens_; }
  size_t shortest() const { return shortest_; }  // in source tokens
  size_t longest() const { return longest_; }
  size_t source_words() const { return source_words_.size(); }  // distinct ones, as written
  size_t target_words() const { return target_words_.size(); }
  const std::map<std::string, Guesses>& by_pronoun() const { return by_pronoun_; }
  Guesses all_pronouns() const;

 private:
  int64_t sentences_ = 0, with_pronoun_ = 0, source_tokens_ = 0, target_tokens_ = 0;
  size_t shortest_ = SIZE_MAX, longest_ = 0;
  std::set<std::string> source_words_, target_words_;
  std::map<std::string, Guesses> by_pronoun_;
};

}  // namespace heed::grammar
