// SPDX-License-Identifier: Apache-2.0
#pragma once
// How good the output is, in small numbers that need no more than the output: exact match and alignment error rate.
// Not here: BLEU (bleu.h), chrF (chrf.h); loss and perplexity, which need the model.
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"

namespace heed::text {

// The share of sentences, 0 to 1, that are the reference but for how much space stands where.
HEED_API double exact_match(std::span<const std::string> hypotheses, std::span<const std::string> references);

// A word of the source and one of the target, both from 0. `sure` is false where a link is only possible.
struct AlignmentLink {
  int64_t source = 0, target = 0;
  bool sure = true;
  auto operator<=>(const AlignmentLink&) const = default;
};
using Alignment = std::vector<AlignmentLink>;

// Pharaoh's format: "0-0 1-2 6p5", a p for what is only possible.
HEED_API Alignment parse_alignment(std::string_view text);
HEED_API std::string to_string(const Alignment&);

// 1 - (|A and S| + |A and P|) / (|A| + |S|) over all sentences (Och and Ney 2003): A the links found, sure or not, S
// the sure ones of the reference, P all of it. 0 if there is nothing to find and nothing was found.
HEED_API double alignment_error_rate(std::span<const Alignment> found, std::span<const Alignment> references);

}  // namespace heed::text
