// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the metrics share: as many results as references, and runs of n symbols that two sequences share. A symbol is a
// character, or a word's number.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heed::text {

// Throws if there are not as many, or none: nothing can be said then.
void check_counts(const char* metric, size_t results, size_t references);

// How many runs of n there are.
inline int64_t ngram_count(std::u32string_view sequence, size_t n) {
  return sequence.size() < n ? 0 : static_cast<int64_t>(sequence.size() - n + 1);
}

// How many of them both have: a run that comes a times in the one and b times in the other counts min(a, b).
int64_t shared_ngrams(std::u32string_view a, std::u32string_view b, size_t n);

}  // namespace heed::text
