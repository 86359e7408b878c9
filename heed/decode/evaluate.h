#pragma once
// How good a model is on pairs that it has not learnt from: how well it foretells the references, what it writes
// itself, and which words it takes to belong together. Not here: pronouns (pronouns.h).
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/decode/align.h"
#include "heed/decode/search.h"
#include "heed/text/corpus.h"
#include "heed/text/tokenizer.h"

namespace heed::decode {

struct EvaluateOptions {
  SearchOptions search{};
  AlignOptions align{};
  bool aligned{false};  // also find alignments
};

// One pair, and what the model made of it.
struct Judged {
  int64_t pair = 0;  // of the corpus
  double loss = 0;   // of the reference, all tokens, in nats
  int64_t tokens = 0,
          right = 0;          // of the reference, its end included; how many would have been chosen, given those before
  std::string translation{};  // none from a language model
  text::Alignment alignment{};  // of source and reference, words as text::words_and_marks cuts them
};

// All pairs that the model can take, in their order. The observer of the pass is told of everything. `progress` is told
// how many are done.
std::vector<Judged> judge_pairs(nn::Pass&, const models::Model&, const text::Tokenizer&, const text::Corpus&,
                                const EvaluateOptions&, const std::function<void(int64_t)>& progress = {});

struct Scores {
  int64_t sentences = 0, tokens = 0;
  double perplexity = 0;                          // of a token of the references
  double accuracy = 0;                            // 0 to 1, of tokens, given those before
  std::optional<double> bleu{}, chrf{}, exact{};  // of translations; exact from 0 to 1
  std::optional<double> alignment_error{};        // 0 to 1
};

// `gold` is empty, or has an alignment for each pair of the corpus.
Scores scores_of(const std::vector<Judged>&, const text::Corpus&, const std::vector<text::Alignment>& gold = {});

// The same by length, in words of the source (of the target where there is none): 1 to 5, 6 to 10, and so on.
struct LengthScores {
  int64_t from = 0, to = 0;
  Scores scores{};
};
std::vector<LengthScores> scores_by_length(const std::vector<Judged>&, const text::Corpus&,
                                           const std::vector<text::Alignment>& gold = {});

}  // namespace heed::decode
