// SPDX-License-Identifier: Apache-2.0
#pragma once
// BLEU of a corpus with one reference (Papineni et al. 2002), as sacreBLEU computes it by default: 13a tokens, n up to
// 4, exponential smoothing, case matters.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"

namespace heed::text {

struct Bleu {
  double score = 0;                    // 0 to 100: brevity_penalty times the geometric mean of the precisions
  std::array<double, 4> precisions{};  // 0 to 100, of runs of 1 to 4 words
  double brevity_penalty = 1;          // exp(1 - reference / hypothesis) if the hypotheses are shorter
  int64_t hypothesis_length = 0, reference_length = 0;  // words
};

HEED_API Bleu bleu(std::span<const std::string> hypotheses, std::span<const std::string> references);

// The words that BLEU counts, as mteval-v13a cuts them: punctuation apart, but for a point or comma between digits.
HEED_API std::vector<std::string> words_13a(std::string_view text);

}  // namespace heed::text
