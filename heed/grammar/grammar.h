// SPDX-License-Identifier: Apache-2.0
#pragma once
// The built-in corpus: English sentences and their Spanish translations, made from a small lexicon and a few patterns,
// without end and without repetition. What is known about each pair is in sentence.h; docs/grammar.md shows examples.
#include <cstdint>
#include <unordered_set>

#include "heed/base/rng.h"
#include "heed/grammar/sentence.h"

namespace heed::grammar {

// The n-th sentence depends on the seed alone. Memory grows by a hash a sentence: what was said is not said again.
class Grammar {
 public:
  explicit Grammar(uint64_t seed) : rng_(seed) {}
  Sentence next();

 private:
  Rng rng_;
  std::unordered_set<uint64_t> said_;  // hashes of source sentences
};

}  // namespace heed::grammar
