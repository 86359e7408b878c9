// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench explain`: what each method of heed/analysis costs beside a plain pass, and how well it predicts what
// leaving a token of the text out changes, which is measured.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/analysis/target.h"
#include "heed/base/describe.h"
#include "heed/decode/engine.h"

namespace heed::bench {

struct ExplainBenchOptions {
  std::string model{};  // a folder
  std::string data{};   // pairs, TSV; empty: those of heed's grammar. Of a model that translates
  std::string json{};   // a file to write, or nothing
  int threads = 1;      // 0: all
  int64_t sentences{300};
  int64_t length{1000};
  int64_t steps{32};

  static void describe(ExplainBenchOptions& o, auto&& field) {
    field("sentences", o.sentences, "that are explained, the first ones; of a language model, texts",
          Range::within(1, 1000000));
    field("length", o.length, "tokens of a language model's text: random ids", Range::within(2, 10000000));
    field("steps", o.steps, "of integrated gradients", Range::within(1, 10000));
  }
};

// One row of the table.
struct ExplainFigures {
  std::string method{};
  double ms = 0;     // of one text: the median
  double ratio = 0;  // its time over that of a plain pass over the same text: the median
  // Over the tokens of the source, by size: Spearman's rank correlation with what leaving each out changes, in the mean
  // of the texts; and in what share of them the largest is the same. None of a method that has no number for a token.
  std::optional<double> spearman{}, same_first{};
};

struct ExplainReport {
  int64_t texts = 0, tokens = 0;  // of the source, or of a language model's text
  double plain_ms = 0;
  double by_chance = 0;  // the share in which any token would be the first
  std::vector<ExplainFigures> rows{};
};

// Spearman's rank correlation: of the ranks, equal values having the mean of theirs. 0 where all of a side are equal.
double spearman(std::span<const double> a, std::span<const double> b);

// The target of each is the log-probability of one token of the output, drawn with a fixed seed. Of a language model
// (length > 0) it is the last one, and the methods that take a pass for each token are left out.
ExplainReport measure_explain(const decode::Engine&, std::span<const data::TokenPair>, const ExplainBenchOptions&);

// Prints a table to standard output. Throws Error where the model or the data are not as they should be.
void bench_explain(const ExplainBenchOptions&);

}  // namespace heed::bench
