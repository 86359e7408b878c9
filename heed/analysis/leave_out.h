// SPDX-License-Identifier: Apache-2.0
#pragma once
// Leaving words out, measured: by how much the target changes where the model reads the text without them. No estimate:
// one pass for each word. What other methods predict is compared with this.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

// For each word, given as the positions of its tokens in what the model reads (the source, or a language model's text):
// target without it - target. The token that is asked for stays the same. None where a word cannot be left out: the one
// that a tagger is asked about, the only one there is, and one of a language model's text that comes only after what is
// asked for. Where text and output are one, as for taggers and language models, the target has to have a position.
// Throws Error.
HEED_API std::vector<std::optional<double>> leave_out(const nn::Pass&, const Question&,
                                                      std::span<const std::vector<int64_t>> words);

}  // namespace heed::analysis
