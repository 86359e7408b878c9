// SPDX-License-Identifier: Apache-2.0
#pragma once
// How good a model is on held-out pairs: the loss of the references, the quality of its translations, and which words
// it aligns. One evaluator, for the dev set of a training run as for a test set. Not here: what only the built-in
// grammar knows, such as pronouns (grammar/pronouns.h).
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/decode/score.h"
#include "heed/decode/translate.h"
#include "heed/text/corpus.h"

namespace heed::evaluate {

// What is measured beside the loss.
struct EvaluateOptions {
  bool translate{true};  // sources are also translated, where the model does that; else references are scored alone
  bool align{false};     // words of source and reference are aligned, by translation.align or its defaults
  decode::TranslateOptions translation{};
  // Called with the number of pairs done.
  std::function<void(int64_t done)> progress{};
};

// Of how many tokens a tokenizer knows nothing but that they are there. A model that writes 'unknown' for them has low
// perplexity and says nothing: scores are to be read beside this rate.
struct UnknownTokens {
  int64_t tokens = 0, unknown = 0;

  double rate() const { return tokens == 0 ? 0 : static_cast<double>(unknown) / static_cast<double>(tokens); }
  UnknownTokens& operator+=(const UnknownTokens& more) {
    tokens += more.tokens, unknown += more.unknown;
    return *this;
  }
};
// Of both sides; of a tagger's target, tags.
struct UnknownOfPairs {
  UnknownTokens source{}, target{};

  static constexpr double kMany = 0.05;
  bool many() const { return std::max(source.rate(), target.rate()) > kMany; }
  UnknownOfPairs& operator+=(const UnknownOfPairs& more) {
    source += more.source, target += more.target;
    return *this;
  }
};
// "0.4 % of the source's tokens and 1.2 % of the target's are unknown"; where they are many, it begins with "warning: "
// and ends with what would help.
HEED_API std::string describe(const UnknownOfPairs&);

// Pairs to measure with, as ids, made once.
class HEED_API TestSet {
 public:
  // Pairs of more than max_length tokens, the end included, are left out. Throws Error, with the line, where a tagger's
  // pair has not one tag for each token, and where nothing is left. `file` is where the corpus is from, for messages.
  TestSet(text::Corpus, const data::Tokenizers&, models::Task, int64_t max_length, const std::string& file = "");

  const text::Corpus& corpus() const { return corpus_; }
  const std::vector<data::TokenPair>& pairs() const { return pairs_; }
  // Of the corpus, that each pair is.
  int64_t line(size_t pair) const { return numbers_[pair]; }
  int64_t left_out() const { return std::ssize(corpus_.pairs) - std::ssize(pairs_); }
  // Of one pair, and of all.
  UnknownOfPairs unknown(size_t pair) const;
  UnknownOfPairs unknown() const;

 private:
  text::Corpus corpus_;
  std::vector<data::TokenPair> pairs_;
  std::vector<int64_t> numbers_;
  int32_t unknown_source_, unknown_target_;  // ids
};

// One pair, its loss, and the model's translation and alignment of it.
struct Judged {
  int64_t pair = 0;     // of the corpus
  double loss = 0;      // of the reference, all tokens, in nats
  int64_t tokens = 0;   // of the reference: with its end; of tags, without
  int64_t correct = 0;  // how many of them are the model's first choice (teacher forcing); never an unknown one
  std::optional<std::string> translation{};
  text::Alignment alignment{};  // of source and reference, words as text::words_and_marks cuts them
  UnknownOfPairs unknown{};
};

// All pairs, in their order. Throws Cancelled where that was requested.
HEED_API std::vector<Judged> judge(const decode::Engine&, const TestSet&, const EvaluateOptions& = {});

// Loss, accuracy and metrics over a set of pairs.
struct Scores {
  int64_t sentences = 0, tokens = 0, correct = 0;
  int64_t whole = 0;                              // sentences of which every token is correct
  double loss = 0;                                // of a token, in nats
  double perplexity = 0;                          // of a token; an unknown one counts as the token that it became
  double accuracy = 0;                            // 0 to 1, of tokens; an unknown one is never correct
  std::optional<double> bleu{}, chrf{}, exact{};  // of translations; exact from 0 to 1
  std::optional<double> alignment_error{};        // 0 to 1
  UnknownOfPairs unknown{};
};

// Gold alignments in Pharaoh's format, a line for each line of the corpus's file: one for each pair. Throws Error with
// file and line, also where there are more lines than the corpus has, or a link goes to a word that is not there.
HEED_API std::vector<text::Alignment> read_alignments(const std::string& path, const text::Corpus&);

// `gold` is empty, or has an alignment for each pair of the corpus.
HEED_API Scores scores_of(const std::vector<Judged>&, const text::Corpus&,
                          const std::vector<text::Alignment>& gold = {});

// The same by length, in words of the source (of the target where there is none): 1 to 5, 6 to 10, and so on.
struct LengthScores {
  int64_t from = 0, to = 0;
  Scores scores{};
};
HEED_API std::vector<LengthScores> scores_by_length(const std::vector<Judged>&, const text::Corpus&,
                                                    const std::vector<text::Alignment>& gold = {});

}  // namespace heed::evaluate
