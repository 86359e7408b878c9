// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/grammar.h"

#include "heed/grammar/patterns.h"

namespace heed::grammar {

namespace {

constexpr size_t kLongest = 20;  // source tokens

// FNV-1a: unlike std::hash, the same everywhere.
uint64_t hash(const std::vector<std::string>& words) {
  uint64_t h = 0xcbf29ce484222325u;
  const auto mix = [&h](char c) { h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u; };
  for (const std::string& word : words) {
    for (const char c : word) mix(c);
    mix(' ');
  }
  return h;
}

}  // namespace

Sentence Grammar::next() {
  while (true) {
    Sentence sentence = realise(draw_tree(rng_));
    if (sentence.source.size() <= kLongest && said_.insert(hash(sentence.source)).second) return sentence;
  }
}

}  // namespace heed::grammar
