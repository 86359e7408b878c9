#include "heed/text/batching.h"

#include <bit>
#include <numeric>
#include <string>

#include "heed/base/error.h"
#include "heed/text/shuffle.h"

namespace heed::text {
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

Batches::Batches(const Corpus& corpus, const Tokenizer& source, const Tokenizer& target, const BatchOptions& options)
    : options_(options), ids_(options.memory) {
  check_options(options);
  for (const Pair& pair : corpus.pairs) add(pair, source, target);
  finish();
}

Batches::Batches(const std::string& path, const TsvOptions& columns, const Tokenizer& source, const Tokenizer& target,
                 const BatchOptions& options)
    : options_(options), ids_(options.memory) {
  check_options(options);
  for_each_pair(path, columns, [&](const Pair& pair) { add(pair, source, target); });
  finish();
}

void Batches::add(const Pair& pair, const Tokenizer& source, const Tokenizer& target) {
  std::vector<int32_t> from = source.encode(pair.source);
  if (!pair.source.empty()) from.push_back(kEnd);
  const std::vector<int32_t> to = target.encode(pair.target);
  const Item item{pairs_seen_++, ids_.size(), std::ssize(from), std::ssize(to)};
  if (item.length() > std::min(options_.max_length, options_.tokens)) {
    ++left_out_;
    return;
  }
  ids_.append(from);
  ids_.append(to);
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

// Any item of a bucket may come to stand anywhere in it, so each counts with the length of the longest.
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

// Which items stand at the places of a batch in this epoch.
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
  Batch batch;
  batch.rows = static_cast<int64_t>(members.size());
  for (const int64_t member : members) {
    const Item& item = items_[member];
    batch.pairs.push_back(item.pair);
    batch.source_lengths.push_back(item.source);
    batch.target_lengths.push_back(item.target_length());
    batch.source_length = std::max(batch.source_length, item.source);
    batch.target_length = std::max(batch.target_length, item.target_length());
    batch.target_tokens += item.target_length();
  }
  batch.source.assign(batch.rows * batch.source_length, kPad);
  batch.target_in.assign(batch.rows * batch.target_length, kPad);
  batch.target_out.assign(batch.rows * batch.target_length, kPad);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const Item& item = items_[members[row]];
    const int32_t *source = ids_.at(item.begin), *target = source + item.source;
    std::copy(source, target, batch.source.begin() + row * batch.source_length);
    const auto in = batch.target_in.begin() + row * batch.target_length;
    *in = kBegin;
    std::copy_n(target, item.target, in + 1);
    *std::copy_n(target, item.target, batch.target_out.begin() + row * batch.target_length) = kEnd;
  }
  return batch;
}

Batch source_batch(std::span<const std::vector<int32_t>> sources) {
  Batch batch;
  batch.rows = static_cast<int64_t>(sources.size());
  for (const std::vector<int32_t>& source : sources) {
    batch.pairs.push_back(static_cast<int64_t>(batch.pairs.size()));
    batch.source_lengths.push_back(static_cast<int64_t>(source.size()) + 1);
    batch.source_length = std::max(batch.source_length, batch.source_lengths.back());
  }
  batch.source.assign(batch.rows * batch.source_length, kPad);
  for (int64_t row = 0; row < batch.rows; ++row) {
    *std::copy(sources[row].begin(), sources[row].end(), batch.source.begin() + row * batch.source_length) = kEnd;
  }
  return batch;
}

void add_targets(Batch& batch, std::span<const std::vector<int32_t>> targets) {
  if (std::ssize(targets) != batch.rows) {
    throw Error("batch: " + std::to_string(targets.size()) + " targets came, expected " + std::to_string(batch.rows));
  }
  for (const std::vector<int32_t>& target : targets) {
    batch.target_lengths.push_back(static_cast<int64_t>(target.size()) + 1);
    batch.target_length = std::max(batch.target_length, batch.target_lengths.back());
    batch.target_tokens += batch.target_lengths.back();
  }
  batch.target_in.assign(batch.rows * batch.target_length, kPad);
  batch.target_out.assign(batch.rows * batch.target_length, kPad);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const std::vector<int32_t>& target = targets[row];
    const auto in = batch.target_in.begin() + row * batch.target_length;
    *in = kBegin;
    std::copy(target.begin(), target.end(), in + 1);
    *std::copy(target.begin(), target.end(), batch.target_out.begin() + row * batch.target_length) = kEnd;
  }
}

}  // namespace heed::text
