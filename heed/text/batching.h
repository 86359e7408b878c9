#pragma once
// Batches of token ids by a budget of tokens: sentences of about the same length together, in an order that a seed
// shuffles. The n-th batch of an epoch is a pure function of (corpus, options, epoch, n), so that a run can be resumed
// in the middle.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/text/corpus.h"
#include "heed/text/id_store.h"
#include "heed/text/tokenizer.h"

namespace heed::text {

// Row-major [rows, length], padded with kPad. The target goes in as <s> y1 y2 ..., and comes out as y1 y2 ... </s>.
struct Batch {
  int64_t rows = 0, source_length = 0, target_length = 0;
  std::vector<int32_t> source, target_in, target_out;
  std::vector<int64_t> source_lengths, target_lengths;  // real tokens of each row
  std::vector<int64_t> pairs;                           // which of the corpus each row is
  int64_t target_tokens = 0;                            // real ones, </s> included
};

struct BatchOptions {
  int64_t tokens{4096};     // of a batch at most: rows times the longer of source and target length, padding included
  int64_t max_length{256};  // a longer pair is left out; kEnd counts
  uint64_t seed{1};
  int64_t memory{int64_t{1} << 30};  // bytes of ids that are kept in memory; the rest goes to a temporary file
};

class HEED_API Batches {
 public:
  // Encodes the corpus once. The source ends with kEnd. A language model has an empty source. Throws Error if no pair
  // is left.
  Batches(const Corpus&, const Tokenizer& source, const Tokenizer& target, const BatchOptions&);
  // The same from a TSV file, of which no more than the ids are kept: it may be larger than memory.
  Batches(const std::string& path, const TsvOptions&, const Tokenizer& source, const Tokenizer& target,
          const BatchOptions&);

  int64_t pairs() const;     // that are used
  int64_t left_out() const;  // longer than max_length, or than a batch
  int64_t size() const;      // batches of an epoch
  // Batch n of an epoch, 0 <= n < size(). Nothing is stored, so several threads may ask. Not shuffled: see in_order().
  Batch at(int64_t epoch, int64_t n) const;
  // The same pairs from shortest to longest, for evaluation.
  std::vector<Batch> in_order() const;

 private:
  // A pair's tokens, in ids_ from `begin` on: the source with its kEnd, if there is one, then the bare target.
  struct Item {
    int64_t pair, begin, source, target;
    int64_t target_length() const { return target + 1; }
    int64_t length() const { return std::max(source, target_length()); }
  };
  struct Range {
    int64_t begin, end;  // of items_
  };
  void add(const Pair&, const Tokenizer& source, const Tokenizer& target);
  void finish();
  void cut_buckets();
  void cut_batches();
  std::vector<int64_t> members(int64_t epoch, const Range& batch) const;
  Batch assemble(std::span<const int64_t> members) const;

  BatchOptions options_;
  IdStore ids_;
  std::vector<Item> items_;     // by length
  std::vector<Range> buckets_;  // of about the same length; an epoch shuffles within them
  std::vector<Range> batches_;  // of an epoch, before the shuffle
  int64_t pairs_seen_ = 0, left_out_ = 0;
};

// Rows that are not from a corpus: sources to be translated, as encode() gives them; kEnd is added.
HEED_API Batch source_batch(std::span<const std::vector<int32_t>> sources);
// And a target for each of them, bare; kBegin and kEnd are added.
HEED_API void add_targets(Batch&, std::span<const std::vector<int32_t>> targets);

}  // namespace heed::text
