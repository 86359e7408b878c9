// SPDX-License-Identifier: Apache-2.0
#pragma once
// IBM model 1 (Brown et al. 1993): how likely a source token e is translated as a target token f, learnt from pairs of
// sentences alone. Each target token comes from one token of its source, or from the empty word, all equally likely:
//
//   p(f1 .. fm | e1 .. el)  ~  prod_j sum_i t(fj | ei),     i from 0, e0: the empty word
//
// and t is found by EM. Not here: what a model's attention aligns (analysis/align.h); what the table is for
// (shortlist.h).
#include <cstdint>
#include <span>
#include <vector>

#include "heed/base/cancel.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"

namespace heed::data {

// Token ids of pairs of sentences, one after the other.
class HEED_API IdPairs {
 public:
  // Throws Error for an id that is not below its vocabulary's size.
  IdPairs(int64_t source_vocabulary, int64_t target_vocabulary);
  void add(std::span<const int32_t> source, std::span<const int32_t> target);

  int64_t size() const { return std::ssize(ends_) / 2; }
  int64_t source_vocabulary() const { return vocabularies_[0]; }
  int64_t target_vocabulary() const { return vocabularies_[1]; }
  std::span<const int32_t> source(int64_t pair) const { return part(2 * pair); }
  std::span<const int32_t> target(int64_t pair) const { return part(2 * pair + 1); }
  // How often each target token comes.
  std::vector<int64_t> target_counts() const;

 private:
  std::span<const int32_t> part(int64_t i) const;
  void append(std::span<const int32_t> ids, size_t side);

  int64_t vocabularies_[2];
  std::vector<int32_t> ids_;
  std::vector<int64_t> ends_;  // of source and target in turn, in ids_
};

struct IbmModel1Options {
  int64_t iterations{5};  // of EM
  int64_t candidates{
      1000};  // target tokens that are looked at for each source token: those that come with it most often

  static void describe(IbmModel1Options& o, auto&& field) {
    field("iterations", o.iterations, "of learning which tokens translate which", Range::within(1, 1000));
    field("candidates", o.candidates, "target tokens looked at for each source token, the most frequent beside it",
          Range::within(1, 1000000));
  }
};

// t(f | e) for the tokens that come in one pair: a row for each source token, and a last one for the empty word.
class HEED_API TranslationTable {
 public:
  int64_t rows() const { return std::ssize(ends_); }
  int64_t empty_word() const { return rows() - 1; }
  std::span<const int32_t> targets(int64_t row) const;  // sorted
  std::span<const double> probabilities(int64_t row) const;

 private:
  friend class IbmModel1;
  int64_t begin(int64_t row) const { return row == 0 ? 0 : ends_[static_cast<size_t>(row - 1)]; }

  std::vector<int64_t> ends_;
  std::vector<int32_t> targets_;
  std::vector<double> probabilities_;
};

// Takes memory for the pairs and for at most `candidates` entries a source token, and time for iterations x pairs x
// source length x target length. Throws Cancelled.
HEED_API TranslationTable ibm_model1(const IdPairs&, const IbmModel1Options& = {}, const Cancel* = nullptr);

}  // namespace heed::data
