// SPDX-License-Identifier: Apache-2.0
#pragma once
// By which heads the gender of a pronoun's referent reaches the output: measured with heads that are switched off, and
// with heads that give what they gave for a sentence in which the pronoun stands for another gender (counterparts.h).
// What is counted are flips: the model then prefers the wrong form. Beside them, what the gradients of the gates
// predict.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/grammar/gender_question.h"

namespace heed::grammar {

// Which word of the sentence was changed.
enum class Changed : uint8_t { adjective, noun };

// Patched from the sentences of one kind: a head, or all heads of a layer or of the encoder, everywhere or at the
// queries of one word.
struct PatchedPath {
  std::string name{};  // "encoder.1.self.2", "encoder.1.self at the word that agrees"
  int64_t flips = 0;
  double change = 0;  // of log p(right) - log p(wrong), summed up over the pairs
};

// One head that is off, over the pairs of the changed adjective.
struct HeadOff {
  std::string name{};
  int64_t flips = 0;
  double change = 0;    // measured, summed up
  double gradient = 0;  // of the gate, summed up: minus this would be the change, were it linear in the gate
};

struct PathsOfPairs {
  int64_t pairs = 0;    // of which the model has the first right
  int64_t flipped = 0;  // and the changed word flips it: what is patched below
  double way = 0;       // by how much it changes these, summed up
  std::vector<PatchedPath> patched{};
};

struct GenderPaths {
  PathsOfPairs adjective{}, noun{};
  std::vector<HeadOff> off{};  // over adjective.flipped
};

// The model has to be opened without packing (folder::OpenOptions::pack).
GenderPaths gender_paths(const decode::Engine&, std::span<const Sentence>, const GenderCall& = {});

}  // namespace heed::grammar
