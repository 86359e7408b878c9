// SPDX-License-Identifier: Apache-2.0
#include "heed/data/batch.h"

#include <algorithm>
#include <string>

#include "heed/base/error.h"

namespace heed::data {
namespace {

Tensor ids_of(int64_t rows, int64_t length, const std::vector<int32_t>& ids) {
  return Tensor::of({rows, length}, std::span<const int32_t>(ids));
}

// [rows, longest]: each row its ids with `first` before them and `last` after them, where given, and padding.
template <class Row>
std::vector<int32_t> padded(int64_t rows, int64_t length, int32_t pad, const Row& write_row) {
  std::vector<int32_t> all(static_cast<size_t>(rows * length), pad);
  for (int64_t row = 0; row < rows; ++row) write_row(static_cast<size_t>(row), all.begin() + row * length);
  return all;
}

}  // namespace

Batch source_batch(std::span<const std::vector<int32_t>> sources, const text::SpecialTokens& special) {
  Batch batch{.rows = std::ssize(sources), .pad = special.pad};
  for (const std::vector<int32_t>& source : sources) {
    batch.items.push_back(std::ssize(batch.items));
    batch.source_lengths.push_back(std::ssize(source) + 1);
    batch.source_length = std::max(batch.source_length, batch.source_lengths.back());
  }
  batch.source = padded(batch.rows, batch.source_length, special.pad, [&](size_t row, auto to) {
    *std::copy(sources[row].begin(), sources[row].end(), to) = special.end;
  });
  return batch;
}

void add_targets(Batch& batch, std::span<const std::vector<int32_t>> targets, const text::SpecialTokens& special) {
  if (std::ssize(targets) != batch.rows) {
    throw Error("batch: " + std::to_string(targets.size()) + " targets came, expected " + std::to_string(batch.rows));
  }
  for (const std::vector<int32_t>& target : targets) {
    batch.target_lengths.push_back(std::ssize(target) + 1);
    batch.target_length = std::max(batch.target_length, batch.target_lengths.back());
    batch.target_tokens += batch.target_lengths.back();
  }
  batch.target_in = padded(batch.rows, batch.target_length, special.pad, [&](size_t row, auto to) {
    *to = special.begin;
    std::copy(targets[row].begin(), targets[row].end(), to + 1);
  });
  batch.target_out = padded(batch.rows, batch.target_length, special.pad, [&](size_t row, auto to) {
    *std::copy(targets[row].begin(), targets[row].end(), to) = special.end;
  });
}

Batch pair_batch(std::span<const TokenPair> pairs, std::span<const size_t> items, const text::SpecialTokens& special) {
  std::vector<std::vector<int32_t>> sources, targets;
  bool no_source = true;
  for (const size_t item : items) {
    sources.push_back(pairs[item].source);
    targets.push_back(pairs[item].target);
    no_source = no_source && pairs[item].source.empty();
  }
  Batch batch = source_batch(sources, special);
  if (no_source) {
    batch.source_length = 0;
    batch.source.clear();
    batch.source_lengths.assign(sources.size(), 0);
  }
  add_targets(batch, targets, special);
  batch.items.assign(items.begin(), items.end());
  return batch;
}

models::Tokens source_tokens(const Batch& batch) {
  if (batch.source_length == 0) return {};
  return {.ids = ids_of(batch.rows, batch.source_length, batch.source), .lengths = batch.source_lengths};
}

models::Tokens target_tokens(const Batch& batch, models::Task task) {
  if (task == models::Task::tag) return {};
  return {.ids = ids_of(batch.rows, batch.target_length, batch.target_in), .lengths = batch.target_lengths};
}

Tensor labels(const Batch& batch) { return ids_of(batch.rows, batch.target_length, batch.target_out); }

}  // namespace heed::data
