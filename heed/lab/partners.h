// SPDX-License-Identifier: Apache-2.0
#pragma once
// A task that needs a look at other words: words 2n and 2n + 1 are partners, and each word of a row is tagged by
// whether its partner is there, too: anywhere in the row, or right beside it.
#include <vector>

#include "heed/lab/training.h"

namespace heed::lab {

inline constexpr int32_t kPartners = 16;  // words, from kFirstId on
enum class Where { anywhere, beside };

inline Draw partners(Where where) {
  return [where](Rng& rng) {
    data::TokenPair pair;
    std::vector<int32_t>& words = pair.source;
    for (uint64_t n = 6 + rng.below(7), t = 0; t < n; ++t) {
      // Two that stand side by side are rare by chance.
      const bool joined = where == Where::beside && t > 0 && rng.below(5) == 0;
      words.push_back(kFirstId + (joined ? (words.back() - kFirstId) ^ 1 : static_cast<int32_t>(rng.below(kPartners))));
    }
    for (size_t t = 0; t < words.size(); ++t) {
      int32_t there = 0;
      for (size_t s = 0; s < words.size(); ++s) {
        const bool seen = where == Where::anywhere || s + 1 == t || t + 1 == s;
        if (seen && words[s] - kFirstId == ((words[t] - kFirstId) ^ 1)) there = 1;
      }
      pair.target.push_back(kFirstId + there);
    }
    return pair;
  };
}

}  // namespace heed::lab
