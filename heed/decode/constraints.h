// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an output must begin with, must contain and must not contain: as text, and as tokens. Not here: how the search
// keeps to it (search.h).
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/data/text_model.h"

namespace heed::decode {

using Phrase = std::vector<int32_t>;

struct Constraints {
  std::vector<int32_t> prefix{};    // the first tokens
  std::vector<Phrase> required{};   // phrases that come, in any order; they may overlap
  std::vector<Phrase> forbidden{};  // phrases that never come
};

struct ConstraintTexts {
  std::string prefix{};
  std::vector<std::string> required{}, forbidden{};
};

// Texts as tokens of the target. Throws Error for a phrase that is empty, or that has a token which is not known.
// Another way to cut a forbidden word into tokens remains possible, and a longer word that begins with its tokens is
// forbidden, too.
HEED_API Constraints constraints_of(const data::TextModel&, const ConstraintTexts&);

// How far an output has come with the phrases that it must contain.
struct Coverage {
  int64_t met = 0;              // tokens of phrases that came, those of an unfinished phrase at its end included
  int64_t left = 0;             // tokens that must still come
  std::vector<int32_t> next{};  // tokens that go on with the unfinished phrase, or begin one that is missing
};
HEED_API Coverage coverage(std::span<const int32_t> tokens, std::span<const Phrase> required);

// Whether `token` after `tokens` completes one of these phrases.
HEED_API bool completes(std::span<const int32_t> tokens, int32_t token, std::span<const Phrase> phrases);

}  // namespace heed::decode
