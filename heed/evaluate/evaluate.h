#pragma once
// How good a model is on pairs that it has not learnt from: how likely it takes the references to be, what it writes
// itself, and which words it aligns. One evaluator, for the dev set of a training run as for a test set.
// Not here: what only the built-in grammar knows, such as pronouns (grammar/pronouns.h).
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

struct EvaluateOptions {
  bool translate{true};  // a model that translates also does; without it, references alone are scored
  bool align{false};     // and aligns the words of source and reference, by translation.align or its defaults
  decode::TranslateOptions translation{};
  // Told how many pairs are done.
  std::function<void(int64_t done)> progress{};
};

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

 private:
  text::Corpus corpus_;
  std::vector<data::TokenPair> pairs_;
  std::vector<int64_t> numbers_;
};

// One pair, and what the model made of it.
struct Judged {
  int64_t pair = 0;     // of the corpus
  double loss = 0;      // of the reference, all tokens, in nats
  int64_t tokens = 0;   // of the reference: with its end; of tags, without
  int64_t correct = 0;  // how many of them the model would have chosen, given those before
  std::optional<std::string> translation{};
  text::Alignment alignment{};  // of source and reference, words as text::words_and_marks cuts them
};

// All pairs, in their order. Throws Cancelled where that was requested.
HEED_API std::vector<Judged> judge(const decode::Engine&, const TestSet&, const EvaluateOptions& = {});

struct Scores {
  int64_t sentences = 0, tokens = 0, correct = 0;
  int64_t whole = 0;                              // sentences of which every token is correct
  double loss = 0;                                // of a token, in nats
  double perplexity = 0;                          // of a token
  double accuracy = 0;                            // 0 to 1, of tokens
  std::optional<double> bleu{}, chrf{}, exact{};  // of translations; exact from 0 to 1
  std::optional<double> alignment_error{};        // 0 to 1
};

// Gold alignments in Pharaoh's format, a line for each line of the corpus's file: one for each pair. Throws Error with
// file and line.
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
