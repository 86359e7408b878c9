// SPDX-License-Identifier: Apache-2.0
#include "heed/data/shortlist.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "heed/base/error.h"
#include "heed/io/safetensors.h"
#include "heed/io/tensor.h"

namespace heed::data {
namespace {

// The names in the file.
constexpr const char *kCounts = "counts", *kTargets = "targets", *kFrequent = "frequent",
                     *kVocabulary = "target_vocabulary", *kFingerprint = "fingerprint";

// The `most` first of 0 .. n - 1 in this order.
template <class Before>
std::vector<int32_t> first_of(int64_t n, int64_t most, const Before& before) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min(n, most);
  std::partial_sort(order.begin(), end, order.end(), before);
  order.erase(end, order.end());
  return order;
}

std::vector<int32_t> most_frequent(const std::vector<int64_t>& counts, int64_t most) {
  return first_of(std::ssize(counts), most, [&](int32_t a, int32_t b) {
    const int64_t of_a = counts[static_cast<size_t>(a)], of_b = counts[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
}

// The likeliest targets of a row.
std::vector<int32_t> likeliest(const TranslationTable& table, int64_t row, int64_t most) {
  const auto t = table.probabilities(row);
  std::vector<int32_t> found = first_of(std::ssize(t), most, [&](int32_t a, int32_t b) {
    const double of_a = t[static_cast<size_t>(a)], of_b = t[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  for (int32_t& place : found) place = table.targets(row)[static_cast<size_t>(place)];
  return found;
}

// FNV-1a, 64 bits: no secret is kept by it, it tells one vocabulary from another.
std::string fingerprint_of(const Tokenizers& tokenizers) {
  if (!tokenizers.source) return {};
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const text::Tokenizer* one : {tokenizers.source.get(), tokenizers.target.get()}) {
    for (int32_t id = 0; id < one->size(); ++id) {
      for (const char c : one->piece(id)) add(static_cast<unsigned char>(c));
      add(0);
    }
    add(1);
  }
  return std::to_string(hash);
}

Tensor as_tensor(std::span<const int32_t> numbers) { return Tensor::of({std::ssize(numbers)}, numbers); }

std::vector<int32_t> numbers_of(const io::SafetensorsFile& file, const char* name, const std::string& path) {
  const io::TensorEntry& entry = file.at(name);
  Tensor numbers;
  try {
    numbers = io::to_tensor(entry, DType::i32);
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
  if (numbers.shape().rank() != 1) {
    throw Error(path + ": '" + name + "' has shape " + to_string(numbers.shape()) + ", expected one dimension");
  }
  const auto all = numbers.span<int32_t>();
  return {all.begin(), all.end()};
}

}  // namespace

Shortlist Shortlist::learn(const IdPairs& pairs, bool shared, const text::SpecialTokens& special,
                           const ShortlistOptions& options, const Cancel* cancel) {
  check_fields("shortlist", options);
  const TranslationTable table = ibm_model1(pairs, options.table, cancel);
  Shortlist made;
  made.target_vocabulary_ = pairs.target_vocabulary();
  for (int32_t e = 0; e < pairs.source_vocabulary(); ++e) {
    std::vector<int32_t> list = likeliest(table, e, options.best);
    if (shared && std::find(list.begin(), list.end(), e) == list.end()) list.push_back(e);
    made.targets_.insert(made.targets_.end(), list.begin(), list.end());
    made.ends_.push_back(std::ssize(made.targets_));
  }
  made.frequent_ = most_frequent(pairs.target_counts(), options.frequent);
  for (const int32_t id : {special.end, special.unknown}) {
    if (id >= 0 && id < made.target_vocabulary_) made.frequent_.push_back(id);
  }
  return made;
}

std::vector<int32_t> Shortlist::tokens_for(std::span<const int32_t> source) const {
  std::vector<int32_t> tokens = frequent_;
  for (const int32_t e : source) {
    const auto at = static_cast<size_t>(e);
    const int64_t begin = e == 0 ? 0 : ends_[at - 1];
    tokens.insert(tokens.end(), targets_.begin() + begin, targets_.begin() + ends_[at]);
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

void Shortlist::save(const std::string& path) const {
  std::vector<int32_t> counts;
  counts.reserve(ends_.size());
  for (size_t e = 0; e < ends_.size(); ++e) {
    counts.push_back(static_cast<int32_t>(ends_[e] - (e == 0 ? 0 : ends_[e - 1])));
  }
  const std::array<int32_t, 1> size{static_cast<int32_t>(target_vocabulary_)};
  const std::array<Tensor, 4> all{as_tensor(counts), as_tensor(targets_), as_tensor(frequent_), as_tensor(size)};
  io::write_safetensors(path,
                        {io::entry_of(kCounts, all[0]), io::entry_of(kTargets, all[1]), io::entry_of(kFrequent, all[2]),
                         io::entry_of(kVocabulary, all[3])},
                        {{kFingerprint, fingerprint_}});
}

Shortlist Shortlist::read(const std::string& path) {
  const io::SafetensorsFile file(path);
  Shortlist found;
  const std::vector<int32_t> size = numbers_of(file, kVocabulary, path);
  if (size.size() != 1) {
    throw Error(path + ": '" + kVocabulary + "' has " + std::to_string(size.size()) + " numbers, expected 1");
  }
  found.target_vocabulary_ = size[0];
  found.targets_ = numbers_of(file, kTargets, path);
  found.frequent_ = numbers_of(file, kFrequent, path);
  int64_t end = 0;
  for (const int32_t count : numbers_of(file, kCounts, path)) {
    if (count < 0) throw Error(path + ": '" + kCounts + "' has " + std::to_string(count) + ", expected 0 or more");
    found.ends_.push_back(end += count);
  }
  if (const auto entry = file.metadata().find(kFingerprint); entry != file.metadata().end()) {
    found.fingerprint_ = entry->second;
  }
  found.check(path);
  return found;
}

void Shortlist::check(const std::string& name) const {
  const int64_t counted = ends_.empty() ? 0 : ends_.back();
  if (counted != std::ssize(targets_)) {
    throw Error(name + ": '" + kTargets + "' has " + std::to_string(targets_.size()) + " tokens, expected " +
                std::to_string(counted) + ", the sum of '" + kCounts + "'");
  }
  for (const std::vector<int32_t>* list : {&targets_, &frequent_}) {
    for (const int32_t id : *list) {
      if (id >= 0 && id < target_vocabulary_) continue;
      throw Error(name + ": '" + (list == &targets_ ? kTargets : kFrequent) + "' has the token " + std::to_string(id) +
                  ", expected 0 to " + std::to_string(target_vocabulary_ - 1));
    }
  }
}

void Shortlist::expect_sizes(const models::Model& model, const std::string& name) const {
  const auto expect = [&](const char* side, int64_t came, int64_t expected) {
    if (came == expected) return;
    throw Error(name + ": was made for " + std::to_string(came) + " tokens of the " + side + ", expected " +
                std::to_string(expected) + " as the model has");
  };
  expect("source", source_vocabulary(), model.source_vocabulary());
  expect("target", target_vocabulary(), model.vocabulary());
}

void Shortlist::expect_made_for(const TextModel& model, const std::string& name) const {
  expect_sizes(model.model(), name);
  const std::string expected = fingerprint_of(model.tokenizers());
  if (expected.empty() || fingerprint_.empty() || expected == fingerprint_) return;
  throw Error(name + ": was made with other tokenizers, expected those of the model: make it again");
}

LearntShortlist learn_shortlist(const text::PairSource& source, const TextModel& model, const ShortlistOptions& options,
                                const Cancel* cancel) {
  model.expect(models::Task::translate);
  IdPairs pairs(model.source().size(), model.target().size());
  const text::CorpusReport report = source.for_each([&](const text::Pair& pair) {
    check_cancel(cancel);
    pairs.add(model.source().encode(pair.source), model.target().encode(pair.target));
  });
  LearntShortlist learnt{Shortlist::learn(pairs, model.tokenizers().are_shared(), model.special(), options, cancel),
                         report};
  learnt.shortlist.set_fingerprint(fingerprint_of(model.tokenizers()));
  return learnt;
}

}  // namespace heed::data
