// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a word takes from other words in each head (links.h, in words), and the heads ranked by what they do to a target
// from that word.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/analysis/align.h"
#include "heed/analysis/reading.h"
#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::analysis {

enum class LinkMethod : uint8_t { weights, values, gradients };

// From a word to the words of one side.
struct WordLinks {
  std::string layer{};
  int64_t head = 0;
  nn::TextSide keys{};
  ByWord links{};
};

// Of every head whose queries are on the word's side, in the order in which they run. Throws Error as links.h does.
HEED_API std::vector<WordLinks> word_links(const nn::Pass&, const Reading&, const Question&, const WordPlace& from,
                                           LinkMethod);

// What each word of a text attends to when it is read, in the mean of one layer's heads or in one of them: of taggers
// and language models. Some words at a time, so that memory stays linear in the length. A translation's words are in
// explain.h.
HEED_API void words_looked_at(const nn::Pass&, const Reading&, const Question&, const AlignOptions&,
                              const std::function<void(size_t word, const ByWord&)>& each);

// A head, and what it does.
struct RankedHead {
  WordLinks weights{};          // what it looks at from the word; empty where there is no word
  double gradient = 0;          // of the target by the head's gate, at the word's queries alone or at all
  std::optional<double> off{};  // measured: the target without the head - the target; none: not measured
};

// By the size of the gradient, largest first; the first `measured` of them are switched off in turn. Without a word,
// all heads of the model, by what they do from anywhere.
HEED_API std::vector<RankedHead> rank_heads(const nn::Pass&, const Reading&, const Question&,
                                            const std::optional<WordPlace>& from, size_t measured);

}  // namespace heed::analysis
