// SPDX-License-Identifier: Apache-2.0
#pragma once
// A padded batch of token ids, and the tensors that a model takes of it: shared by training, evaluation and decoding.
// Not here: which rows are batched together (groups.h for a list, batches.h for a corpus).
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/export.h"
#include "heed/models/model.h"
#include "heed/text/tokenizer.h"

namespace heed::data {

// Rows of ids with padding, for teacher forcing: the decoder's input is <s> y1 y2 ..., its labels are y1 y2 ... </s>. A
// language model has no source; a tagger's labels are a tag for each token of the source, and it has no target input.
struct Batch {
  int64_t rows = 0, source_length = 0, target_length = 0;
  std::vector<int32_t> source{}, target_in{}, target_out{};  // [rows, length]
  std::vector<int64_t> source_lengths{}, target_lengths{};   // tokens of each row that are not padding
  std::vector<int64_t> items{};                              // which of the corpus, or of the list, each row is
  int64_t target_tokens = 0;                                 // without padding, </s> included
  int32_t pad = text::SpecialTokens{}.pad;
};

// A source and a target as ids, without <s> and </s>, as a tokenizer's encode() gives them.
struct TokenPair {
  std::vector<int32_t> source{}, target{};
};

// Sources alone; `end` is added to each.
HEED_API Batch source_batch(std::span<const std::vector<int32_t>> sources, const text::SpecialTokens& = {});
// Targets for a batch of sources; begin and end are added.
HEED_API void add_targets(Batch&, std::span<const std::vector<int32_t>> targets, const text::SpecialTokens& = {});
// Both, of `items` of a list: row i is pairs[items[i]]. Pairs with an empty source have none, as for a language model.
HEED_API Batch pair_batch(std::span<const TokenPair> pairs, std::span<const size_t> items,
                          const text::SpecialTokens& = {});

// A batch as tensors. The lengths are borrowed from the batch. Empty where there is no source.
HEED_API models::Tokens source_tokens(const Batch&);
// Empty for a tagger, whose model is given no target.
HEED_API models::Tokens target_tokens(const Batch&, models::Task = models::Task::translate);
HEED_API Tensor labels(const Batch&);  // [rows, target_length], padding is batch.pad

}  // namespace heed::data
