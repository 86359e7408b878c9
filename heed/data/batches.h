// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches of token ids by a budget of tokens: sentences of about the same length together, in an order that a seed
// shuffles. The n-th batch of an epoch is a pure function of (corpus, options, epoch, n), so that a run can be resumed
// in the middle.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/data/batch.h"
#include "heed/data/id_store.h"
#include "heed/text/corpus.h"
#include "heed/text/tokenizer.h"

namespace heed::data {

// Where training takes its batches from. Batch n of an epoch is a pure function of both, so that a run can be resumed.
// A source without end has one epoch, of kEndless batches.
class HEED_API BatchSource {
 public:
  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
  virtual ~BatchSource() = default;
  virtual int64_t size() const = 0;  // batches of an epoch
  virtual Batch at(int64_t epoch, int64_t n) const = 0;
};

// The size of batches, and what is left out of them.
struct BatchOptions {
  int64_t tokens{4096};     // of a batch at most: rows times the longer of source and target length, padding included
  int64_t max_length{256};  // a longer pair is left out; the end counts
  uint64_t seed{1};
  int64_t memory{int64_t{1} << 30};  // bytes of ids that are kept in memory; the rest goes to a temporary file
  bool tags{false};                  // targets are tags: a pair that has not one for each token of its source throws
};

// The batches of a corpus.
class HEED_API Batches final : public BatchSource {
 public:
  // Encodes the corpus once. The source gets its end. A language model has an empty source. Throws Error if no pair is
  // left.
  Batches(const text::Corpus&, const text::Tokenizer& source, const text::Tokenizer& target, const BatchOptions&);
  // The same from files, of which no more than the ids are kept: they may be larger than memory.
  Batches(const text::PairSource&, const text::Tokenizer& source, const text::Tokenizer& target, const BatchOptions&);
  // The same from ids.
  Batches(std::span<const TokenPair>, const BatchOptions&, const text::SpecialTokens& = {});

  int64_t pairs() const;     // that are used
  int64_t left_out() const;  // longer than max_length or than a batch, or without a token in the source
  int64_t size() const override;
  // 0 <= n < size(), in the epoch's shuffled order. Changes nothing, so several threads may call it.
  Batch at(int64_t epoch, int64_t n) const override;
  // The same pairs from shortest to longest, for evaluation.
  std::vector<Batch> in_order() const;

 private:
  // A pair's tokens, in ids_ from `begin` on: the source with its end, if there is one, then the bare target.
  struct Item {
    int64_t pair, begin, source, target;
    int64_t target_length() const { return target + 1; }
    int64_t length() const { return std::max(source, target_length()); }
  };
  struct Range {
    int64_t begin, end;  // of items_
  };
  void add(const text::Pair&, const text::Tokenizer& source, const text::Tokenizer& target, const std::string& file);
  void add(const TokenPair&, const std::string& place);
  void finish();
  void cut_buckets();
  void cut_batches();
  std::vector<int64_t> members(int64_t epoch, const Range& batch) const;
  Batch assemble(std::span<const int64_t> members) const;

  BatchOptions options_;
  text::SpecialTokens special_;
  IdStore ids_;
  std::vector<Item> items_;     // by length
  std::vector<Range> buckets_;  // of about the same length; an epoch shuffles within them
  std::vector<Range> batches_;  // of an epoch, before the shuffle
  int64_t pairs_seen_ = 0, left_out_ = 0;
};

}  // namespace heed::data
