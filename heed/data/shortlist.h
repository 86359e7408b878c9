// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lexical shortlist: for each source token the target tokens that it is likely translated as, and the target tokens
// that are frequent anyway. A translation is then searched among these few alone, which saves most of the output layer
// where the vocabulary is large beside the model; a token outside the list cannot come. Not here: the search
// (decode/search.h), the file's name (folder/model_folder.h).
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/base/cancel.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/data/ibm_model1.h"
#include "heed/data/text_model.h"
#include "heed/text/corpus.h"

namespace heed::data {

struct ShortlistOptions {
  int64_t best{100};      // target tokens of each source token
  int64_t frequent{100};  // target tokens of every sentence
  IbmModel1Options table{};

  static void describe(ShortlistOptions& o, auto&& field) {
    field("best", o.best, "target tokens for each source token", Range::within(1, 1000000));
    field("frequent", o.frequent, "target tokens that are in every list, the most frequent ones",
          Range::within(0, 1000000));
    field("table", o.table, "how it is learnt");
  }
};

class HEED_API Shortlist {
 public:
  // Learnt from pairs by IBM model 1. `shared`: both sides have one vocabulary, and a source token is in its own list,
  // so that names can be copied. The end and the unknown token are in every list.
  static Shortlist learn(const IdPairs&, bool shared, const text::SpecialTokens&, const ShortlistOptions& = {},
                         const Cancel* = nullptr);
  // From a file that save() has written. Throws Error where it is broken.
  static Shortlist read(const std::string& path);
  void save(const std::string& path) const;

  int64_t source_vocabulary() const { return std::ssize(ends_); }
  int64_t target_vocabulary() const { return target_vocabulary_; }
  int64_t size() const { return std::ssize(targets_); }  // entries of all source tokens
  // The tokens that may come in the translation of a source: sorted, each once. The ids must be below
  // source_vocabulary().
  std::vector<int32_t> tokens_for(std::span<const int32_t> source) const;

  // The tokenizers that it was made with, as one number; empty: not known. Another one means other tokens.
  const std::string& fingerprint() const { return fingerprint_; }
  void set_fingerprint(std::string fingerprint) { fingerprint_ = std::move(fingerprint); }
  // Throws Error where a model has vocabularies of other sizes. `name` is what the message calls the list.
  void expect_sizes(const models::Model&, const std::string& name) const;
  // The same, and where the tokenizers are others.
  void expect_made_for(const TextModel&, const std::string& name) const;

 private:
  void check(const std::string& name) const;

  int64_t target_vocabulary_ = 0;
  std::vector<int64_t> ends_;      // of each source token's list, in targets_
  std::vector<int32_t> targets_;   // likeliest first
  std::vector<int32_t> frequent_;  // in every list
  std::string fingerprint_;
};

// What was read, and what became of it.
struct LearntShortlist {
  Shortlist shortlist;
  text::CorpusReport report;
};

// From the pairs that a model was trained on, with its tokenizers. Throws Error where it does not translate.
HEED_API LearntShortlist learn_shortlist(const text::PairSource&, const TextModel&, const ShortlistOptions& = {},
                                         const Cancel* = nullptr);

}  // namespace heed::data
