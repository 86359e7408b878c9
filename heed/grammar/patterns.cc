// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/patterns.h"

namespace heed::grammar {

namespace {

struct Pattern {
  Drawn (*draw)(Drawer&);
  uint64_t weight;  // in percent; half of the sentences have a pronoun
};

constexpr Pattern kPatterns[] = {
    {draw_action, 14}, {draw_description, 10}, {draw_question, 10}, {draw_relative, 10}, {draw_coordination, 6},
    {draw_reason, 26}, {draw_errand, 9},       {draw_location, 7},  {draw_sequence, 8},
};

const Pattern& draw_pattern(Rng& rng) {
  uint64_t ticket = rng.below(100);
  const Pattern* pattern = kPatterns;
  while (ticket >= pattern->weight) ticket -= (pattern++)->weight;
  return *pattern;
}

}  // namespace

Tree draw_tree(Rng& rng) {
  const Pattern& pattern = draw_pattern(rng);
  while (true) {
    Drawer drawer(rng);
    if (Drawn tree = pattern.draw(drawer)) return std::move(*tree);
  }
}

}  // namespace heed::grammar
