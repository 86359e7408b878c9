// SPDX-License-Identifier: Apache-2.0
#pragma once
// How likely a model takes given output to be: a translation of a source, a text, or the tags of a sentence. The output
// is given to the model (teacher forcing), all of it in one pass.
//
//   const decode::Scorer scorer("model");
//   scorer.score({"The cat sleeps.", "El gato duerme."}).perplexity();
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/data/batch.h"
#include "heed/decode/engine.h"
#include "heed/text/corpus.h"

namespace heed::decode {

struct ScoreOptions {
  CallOptions call{.batch = {.rows = 256, .tokens = 1024}};  // logits of a whole batch are in memory

  static void describe(ScoreOptions& o, auto&& field) { data::GroupOptions::describe(o.call.batch, field); }
};

struct Score {
  // Natural, of each token of the output given those before it; the end of a sentence is the last one. Of tags: of each
  // tag.
  std::vector<double> log_probabilities{};
  int64_t correct = 0;  // of these tokens, how many are the model's own first choice; never one that is unknown

  double log_probability() const {  // of all
    double sum = 0;
    for (const double one : log_probabilities) sum += one;
    return sum;
  }
  int64_t tokens() const { return std::ssize(log_probabilities); }
  double perplexity() const {  // of a token
    return log_probabilities.empty() ? 1 : std::exp(-log_probability() / static_cast<double>(tokens()));
  }
};

// Several threads may use one at the same time.
class HEED_API Scorer {
 public:
  // Throws Error for a model that has no output to be scored.
  explicit Scorer(Engine engine);
  explicit Scorer(const std::string& folder, int threads = 1) : Scorer(Engine(folder, threads)) {}

  const Engine& engine() const { return engine_; }

  // Throws Error where a pair cannot be scored: too long, no UTF-8, no source, or not a tag for each token.
  void check(const text::Pair& pair) const;
  // A language model's text is the target, and it has no source.
  Score score(const text::Pair& pair, const ScoreOptions& = {}) const;
  // Throws Error, with the number of the pair, where one cannot be scored, before anything is done; Cancelled where
  // that was requested.
  std::vector<Score> score(std::span<const text::Pair> pairs, const ScoreOptions& = {},
                           const Done<Score>& done = {}) const;
  std::vector<Score> score_ids(std::span<const data::TokenPair> pairs, const ScoreOptions& = {},
                               const Done<Score>& done = {}) const;

 private:
  data::TokenPair encode(const text::Pair& pair) const;
  void check_ids(const data::TokenPair& pair) const;
  Engine engine_;
};

}  // namespace heed::decode
