// SPDX-License-Identifier: Apache-2.0
#include "heed/data/ibm_model1.h"

#include <algorithm>
#include <string>
#include <utility>

#include "heed/base/error.h"

namespace heed::data {

IdPairs::IdPairs(int64_t source_vocabulary, int64_t target_vocabulary)
    : vocabularies_{source_vocabulary, target_vocabulary} {}

void IdPairs::add(std::span<const int32_t> source, std::span<const int32_t> target) {
  append(source, 0);
  append(target, 1);
}

void IdPairs::append(std::span<const int32_t> ids, size_t side) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocabularies_[side]) continue;
    throw Error(std::string("pairs: an id of the ") + (side == 0 ? "source" : "target") + " is " + std::to_string(id) +
                ", expected 0 to " + std::to_string(vocabularies_[side] - 1));
  }
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ends_.push_back(std::ssize(ids_));
}

std::span<const int32_t> IdPairs::part(int64_t i) const {
  const int64_t begin = i == 0 ? 0 : ends_[static_cast<size_t>(i - 1)], end = ends_[static_cast<size_t>(i)];
  return std::span(ids_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

std::vector<int64_t> IdPairs::target_counts() const {
  std::vector<int64_t> counts(static_cast<size_t>(target_vocabulary()));
  for (int64_t pair = 0; pair < size(); ++pair) {
    for (const int32_t f : target(pair)) ++counts[static_cast<size_t>(f)];
  }
  return counts;
}

std::span<const int32_t> TranslationTable::targets(int64_t row) const {
  return {targets_.data() + begin(row), targets_.data() + ends_[static_cast<size_t>(row)]};
}

std::span<const double> TranslationTable::probabilities(int64_t row) const {
  return {probabilities_.data() + begin(row), probabilities_.data() + ends_[static_cast<size_t>(row)]};
}

// The table while it is learnt.
class IbmModel1 {
 public:
  IbmModel1(const IdPairs& pairs, const IbmModel1Options& options, const Cancel* cancel)
      : pairs_(pairs), options_(options), cancel_(cancel) {}

  TranslationTable run() {
    find_entries();
    table_.probabilities_.assign(table_.targets_.size(), 1);  // all equal: the first step of EM sees their ratios alone
    for (int64_t n = 0; n < options_.iterations; ++n) {
      count_alignments();
      normalise();
    }
    return std::move(table_);
  }

 private:
  // Which pairs each source token is in, so that its row can be made at once and cut.
  std::vector<std::vector<int64_t>> pairs_by_source() const {
    std::vector<std::vector<int64_t>> found(static_cast<size_t>(pairs_.source_vocabulary()));
    for (int64_t pair = 0; pair < pairs_.size(); ++pair) {
      for (const int32_t e : pairs_.source(pair)) {
        std::vector<int64_t>& of_source = found[static_cast<size_t>(e)];
        if (of_source.empty() || of_source.back() != pair) of_source.push_back(pair);
      }
    }
    return found;
  }

  void find_entries() {
    std::vector<std::vector<int64_t>> found = pairs_by_source();
    std::vector<int64_t> counts(static_cast<size_t>(pairs_.target_vocabulary()));
    std::vector<int32_t> seen;
    for (std::vector<int64_t>& of_source : found) {
      check_cancel(cancel_);
      for (const int64_t pair : of_source) {
        for (const int32_t f : pairs_.target(pair)) {
          if (counts[static_cast<size_t>(f)]++ == 0) seen.push_back(f);
        }
      }
      add_row(seen, counts);
      for (const int32_t f : seen) counts[static_cast<size_t>(f)] = 0;
      seen.clear();
      std::vector<int64_t>().swap(of_source);
    }
    counts = pairs_.target_counts();
    for (int32_t f = 0; f < pairs_.target_vocabulary(); ++f) {
      if (counts[static_cast<size_t>(f)] > 0) seen.push_back(f);
    }
    add_row(seen, counts);  // of the empty word
  }

  // The most frequent of `seen`.
  void add_row(std::vector<int32_t> seen, const std::vector<int64_t>& counts) {
    if (std::ssize(seen) > options_.candidates) {
      std::nth_element(seen.begin(), seen.begin() + options_.candidates, seen.end(), [&](int32_t a, int32_t b) {
        const int64_t of_a = counts[static_cast<size_t>(a)], of_b = counts[static_cast<size_t>(b)];
        return of_a != of_b ? of_a > of_b : a < b;
      });
      seen.resize(static_cast<size_t>(options_.candidates));
    }
    std::sort(seen.begin(), seen.end());
    table_.targets_.insert(table_.targets_.end(), seen.begin(), seen.end());
    table_.ends_.push_back(std::ssize(table_.targets_));
  }

  // E: of each target token, the share that each token of its source has in it.
  void count_alignments() {
    shares_.assign(table_.targets_.size(), 0);
    std::vector<size_t> entries;  // of one target token
    for (int64_t pair = 0; pair < pairs_.size(); ++pair) {
      if (pair % 1024 == 0) check_cancel(cancel_);
      for (const int32_t f : pairs_.target(pair)) {
        entries.clear();
        double sum = add_entry(table_.empty_word(), f, entries);
        for (const int32_t e : pairs_.source(pair)) sum += add_entry(e, f, entries);
        if (sum == 0) continue;  // cut from every row
        for (const size_t entry : entries) shares_[entry] += table_.probabilities_[entry] / sum;
      }
    }
  }

  // t(f | e), whose entry is noted; 0: it was cut.
  double add_entry(int64_t e, int32_t f, std::vector<size_t>& entries) const {
    const auto row = table_.targets(e);
    const auto place = std::lower_bound(row.begin(), row.end(), f);
    if (place == row.end() || *place != f) return 0;
    const auto entry = static_cast<size_t>(table_.begin(e) + (place - row.begin()));
    entries.push_back(entry);
    return table_.probabilities_[entry];
  }

  // M: t(f | e) = share of f / shares of all.
  void normalise() {
    for (int64_t row = 0; row < table_.rows(); ++row) {
      double sum = 0;
      const auto begin = static_cast<size_t>(table_.begin(row)), end = begin + table_.targets(row).size();
      for (size_t i = begin; i < end; ++i) sum += shares_[i];
      for (size_t i = begin; i < end; ++i) table_.probabilities_[i] = sum > 0 ? shares_[i] / sum : 0;
    }
  }

  const IdPairs& pairs_;
  const IbmModel1Options& options_;
  const Cancel* cancel_;
  TranslationTable table_;
  std::vector<double> shares_;  // of each entry of the table
};

TranslationTable ibm_model1(const IdPairs& pairs, const IbmModel1Options& options, const Cancel* cancel) {
  check_fields("ibm_model1", options);
  return IbmModel1(pairs, options, cancel).run();
}

}  // namespace heed::data
