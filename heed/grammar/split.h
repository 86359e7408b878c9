// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training, development and test sentences that differ in what they combine, not only in their words: some pairs of a
// noun and an adjective, and of a noun and a pronoun that stands for it, never occur in training.
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "heed/grammar/sentence.h"

namespace heed::grammar {

enum class Subset { train, dev, test };

class Split {
 public:
  // Which combinations are held out depends on the seed. Every word keeps most of its combinations for training.
  explicit Split(uint64_t seed);

  // Where a sentence belongs: with a held-out combination, to the part that holds it; without, to training. None if it
  // has combinations of two parts.
  std::optional<Subset> part_of(const Sentence& sentence) const;

  const std::set<Combination>& held_out_for_dev() const { return dev_; }
  const std::set<Combination>& held_out_for_test() const { return test_; }

 private:
  std::set<Combination> dev_, test_;
};

}  // namespace heed::grammar
