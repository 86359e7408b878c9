// SPDX-License-Identifier: Apache-2.0
#pragma once
// Translating text, or token ids, with a model that translates.
//
//   const decode::Translator translator("model");
//   std::puts(translator.translate("The cat sleeps.").text.c_str());
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/analysis/align.h"
#include "heed/base/export.h"
#include "heed/data/shortlist.h"
#include "heed/decode/constraints.h"
#include "heed/decode/engine.h"
#include "heed/decode/search.h"
#include "heed/text/metrics.h"

namespace heed::decode {

struct TranslateOptions {
  SearchOptions search{};
  std::optional<analysis::AlignOptions> align{};  // which attention aligns words; none: they are not aligned
  Constraints constraints{};                      // on every output
  // Tokens are chosen among those of the source's list alone, which is faster where the vocabulary is large;
  // log-probabilities are then those among the list. None: all.
  std::shared_ptr<const data::Shortlist> shortlist{};
  // Number of the first sentence: what is drawn for sentence i depends on the seed and first + i alone.
  int64_t first{0};
  CallOptions call{};
};

// One hypothesis of a sentence.
struct Translation {
  std::string text{};             // empty where the model has no tokenizers
  std::vector<int32_t> tokens{};  // of the target, without begin and end
  double score = 0;               // log-probability after the length penalty
  double log_probability = 0;     // of all tokens and the end
  bool finished = true;           // false: cut at the longest that was allowed
  // Where it was asked for: words of the source and of the text, as spaces cut them; where ids came, their tokens.
  text::Alignment alignment{};
};
using Translations = std::vector<Translation>;  // best first; of an empty sentence one, which is empty

// Several threads may use one at the same time.
class HEED_API Translator {
 public:
  // Throws Error for a model that does something else.
  explicit Translator(Engine engine);
  explicit Translator(const std::string& folder, int threads = 1) : Translator(Engine(folder, threads)) {}

  const Engine& engine() const { return engine_; }

  // The best translation of one sentence.
  Translation translate(const std::string& sentence, const TranslateOptions& = {}) const;
  // Of many, in batches. Throws Error, with the number of the sentence, where one cannot be translated, before anything
  // is done; Cancelled where that was requested.
  std::vector<Translations> translate(std::span<const std::string> sentences, const TranslateOptions& = {},
                                      const Done<Translations>& done = {}) const;
  // The same over ids of the source, as a tokenizer gives them.
  std::vector<Translations> translate_ids(std::span<const std::vector<int32_t>> sentences, const TranslateOptions& = {},
                                          const Done<Translations>& done = {}) const;

 private:
  // `texts` is empty, or has the text of each.
  std::vector<Translations> run(std::span<const std::vector<int32_t>> sources, std::span<const std::string> texts,
                                const TranslateOptions&, const Done<Translations>& done) const;
  void align(nn::Pass&, std::span<const std::vector<int32_t>> sources, std::span<const std::string> texts,
             const analysis::AlignOptions&, Translations&, size_t item) const;

  Engine engine_;
};

}  // namespace heed::decode
