// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which method of heed/analysis finds the noun that a pronoun stands for: of the nouns of a sentence the one that gets
// most from the pronoun, from the word of the source that agrees ('tired'), or from the word that the model chose
// ('cansado'). Counted where another noun has the other gender, and the model prefers the right form: what made it do
// so is known then.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/grammar/gender_question.h"

namespace heed::grammar {

// Where one looks from.
enum class From : uint8_t { pronoun, agreeing, target };
constexpr std::array<const char*, 3> kFromNames = {"pronoun", "agreeing", "target"};

// A method, with one head or all together.
struct NounFinder {
  std::string method{};                           // "weights"
  std::string head{};                             // "encoder.1.self.2"; empty: all of them, or the method has none
  std::array<std::optional<int64_t>, 3> found{};  // by From; none: it does not look from there
};

struct NounFinding {
  int64_t words = 0;     // that agree with a pronoun, where the nouns differ in gender
  int64_t right = 0;     // of these the model prefers the right form: what is counted below
  double by_chance = 0;  // of these: found by taking any noun
  std::vector<NounFinder> finders{};

  // Of a method's heads, the one that finds it most often from there; null where none looks from there.
  const NounFinder* best(const std::string& method, From) const;
};

struct NounFindingOptions {
  int64_t steps{8};  // of integrated gradients; 0: without them
};

// The model has to be opened without packing (folder::OpenOptions::pack), and be a Transformer.
NounFinding find_nouns(const decode::Engine&, std::span<const Sentence>, const NounFindingOptions& = {},
                       const GenderCall& = {});

}  // namespace heed::grammar
