// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happens in the sentences that need a pronoun: who does what to what, and what may then be said of either. The
// tables are written so that the predicate fits one of the nouns and not the other.
#include <span>
#include <vector>

#include "heed/grammar/syntax.h"

namespace heed::grammar {

// Hindrance: not done because of it (too tired, too wide), or done although. Motive: done because of it, or not done
// although.
enum class Ground { hindrance, motive };

struct ReasonFrame {
  Ground ground;
  const Verb* verb;
  Traits subject, object;
  std::vector<const Adjective*> of_subject, of_object;  // what may be said of either
};

// A thing at a place, and what one does to the one but not to the other.
struct ErrandFrame {
  const Verb* verb;  // that brings them together: find, put
  Traits subject, thing;
  Preposition preposition;
  Traits place;
  std::vector<const Verb*> to_thing, to_place;
};

// One verb and then another with the same object: bought it and ate it; sold it because she didn't need it.
struct SequenceFrame {
  Conjunction conjunction;  // and_then, because
  std::vector<const Verb*> first, second;
  bool second_negative;
};

std::span<const ReasonFrame> reason_frames();
std::span<const ErrandFrame> errand_frames();
std::span<const SequenceFrame> sequence_frames();

}  // namespace heed::grammar
