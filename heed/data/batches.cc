// SPDX-License-Identifier: Apache-2.0
#include "heed/data/batches.h"

#include <bit>
#include <numeric>
#include <string>

#include "heed/base/error.h"
#include "heed/data/shuffle.h"

namespace heed::data {
namespace {

// Lengths up to 16 have a bucket each; beyond, a bucket spans at most an eighth of the length.
int64_t bucket_of(int64_t length) {
  const auto width = static_cast<int64_t>(std::max<uint64_t>(1, std::bit_floor(static_cast<uint64_t>(length)) / 8));
  return (length + width - 1) / width * width;
}

void check_options(const BatchOptions& options) {
  const auto check = [](const char* name, int64_t value) {
    if (value < 1) {
      throw Error(std::string("batches: ") + name + " is " + std::to_string(value) + ", expected at least 1");
    }
  };
  check("tokens", options.tokens);
  check("max_length", options.max_length);
}

}  // namespace

Batches::Batches(const text::Corpus& corpus, const text::Tokenizer& source, const text::Tokenizer& target,
                 const BatchOptions& options)
    : options_(options), special_(target.special()), ids_(options.memory) {
  check_options(options);
  for (const text::Pair& pair : corpus.pairs) add(pair, source, target, "line ");
  finish();
}

Batches::Batches(const text::PairSource& file, const text::Tokenizer& source, const text::Tokenizer& target,
                 const BatchOptions& options)
    : options_(options), special_(target.special()), ids_(options.memory) {
  check_options(options);
  file.for_each([&](const text::Pair& pair) { add(pair, source, target, file.path() + ":"); });
  finish();
}

Batches::Batches(std::span<const TokenPair> pairs, const BatchOptions& options, const text::SpecialTokens& special)
    : options_(options), special_(special), ids_(options.memory) {
  check_options(options);
  for (const TokenPair& pair : pairs) add(pair, "pair " + std::to_string(pairs_seen_));
  finish();
}

void Batches::add(const text::Pair& pair, const text::Tokenizer& source, const text::Tokenizer& target,
                  const std::string& file) {
  const TokenPair ids{source.encode(pair.source), target.encode(pair.target)};
  if (ids.source.empty() && !pair.source.empty()) {  // characters that a tokenizer drops, and nothing else
    ++pairs_seen_, ++left_out_;
    return;
  }
  add(ids, file + std::to_string(pair.line));
}

void Batches::add(const TokenPair& pair, const std::string& place) {
  const auto& [source, target] = pair;
  if (options_.tags && source.size() != target.size()) {  // training would learn nonsense
    throw Error(place + ": " + std::to_string(source.size()) + " tokens and " + std::to_string(target.size()) +
                " tags, expected as many");
  }
  const int64_t source_length = source.empty() ? 0 : std::ssize(source) + 1;
  const Item item{pairs_seen_++, ids_.size(), source_length, std::ssize(target)};
  if (item.length() > std::min(options_.max_length, options_.tokens)) {
    ++left_out_;
    return;
  }
  ids_.append(source);
  if (!source.empty()) ids_.append({&special_.end, 1});
  ids_.append(target);
  items_.push_back(item);
}

void Batches::finish() {
  if (items_.empty()) {
    throw Error("batches: none of " + std::to_string(pairs_seen_) + " pairs has at most " +
                std::to_string(std::min(options_.max_length, options_.tokens)) + " tokens");
  }
  ids_.finish();
  std::stable_sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.length() < b.length(); });
  cut_buckets();
  cut_batches();
}

void Batches::cut_buckets() {
  for (int64_t i = 0; i < pairs(); ++i) {
    if (buckets_.empty() || bucket_of(items_[i].length()) != bucket_of(items_[i - 1].length())) {
      buckets_.push_back({i, i});
    }
    buckets_.back().end = i + 1;
  }
}

// The shuffle may move an item anywhere in its bucket, so each counts with the length of the longest.
void Batches::cut_batches() {
  for (const Range& bucket : buckets_) {
    const int64_t longest = items_[bucket.end - 1].length(), rows = options_.tokens / longest;
    for (int64_t i = bucket.begin; i < bucket.end;) {
      if (batches_.empty() || batches_.back().end - batches_.back().begin >= rows) batches_.push_back({i, i});
      Range& batch = batches_.back();
      batch.end = i = std::min(bucket.end, batch.begin + rows);
    }
  }
}

int64_t Batches::pairs() const { return static_cast<int64_t>(items_.size()); }
int64_t Batches::left_out() const { return left_out_; }
int64_t Batches::size() const { return static_cast<int64_t>(batches_.size()); }

Batch Batches::at(int64_t epoch, int64_t n) const {
  if (epoch < 0 || n < 0 || n >= size()) {
    throw Error("batches: epoch is " + std::to_string(epoch) + " and batch " + std::to_string(n) +
                ", expected an epoch from 0 and a batch below " + std::to_string(size()));
  }
  const Shuffle order(size(), options_.seed, epoch, 0);
  return assemble(members(epoch, batches_[order(n)]));
}

std::vector<Batch> Batches::in_order() const {
  std::vector<Batch> result;
  for (const Range& batch : batches_) {
    std::vector<int64_t> all(static_cast<size_t>(batch.end - batch.begin));
    std::iota(all.begin(), all.end(), batch.begin);
    result.push_back(assemble(all));
  }
  return result;
}

// The items of a batch in this epoch.
std::vector<int64_t> Batches::members(int64_t epoch, const Range& batch) const {
  std::vector<int64_t> result;
  auto bucket = std::upper_bound(buckets_.begin(), buckets_.end(), batch.begin,
                                 [](int64_t place, const Range& range) { return place < range.end; });
  for (int64_t place = batch.begin; place < batch.end; ++bucket) {
    const auto number = static_cast<uint32_t>(bucket - buckets_.begin());
    const Shuffle shuffle(bucket->end - bucket->begin, options_.seed, epoch, number + 1);
    for (; place < std::min(batch.end, bucket->end); ++place) {
      result.push_back(bucket->begin + shuffle(place - bucket->begin));
    }
  }
  return result;
}

Batch Batches::assemble(std::span<const int64_t> members) const {
  std::vector<TokenPair> pairs;
  std::vector<size_t> all(members.size());
  std::iota(all.begin(), all.end(), size_t{0});
  for (const int64_t member : members) {
    const Item& item = items_[member];
    const int32_t *source = ids_.at(item.begin), *target = source + item.source;
    pairs.push_back({{source, item.source > 0 ? target - 1 : source}, {target, target + item.target}});
  }
  Batch batch = pair_batch(pairs, all, special_);
  for (size_t row = 0; row < members.size(); ++row) batch.items[row] = items_[members[row]].pair;
  return batch;
}

}  // namespace heed::data
