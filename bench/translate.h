// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench translate`: how many tokens a second a model that translates gives, by beam and batch.
#include <cstdint>
#include <string>
#include <vector>

#include "bench/decoding.h"
#include "heed/base/describe.h"
#include "heed/decode/translate.h"

namespace heed::bench {

struct TranslateBenchOptions {
  SubjectOptions subject{.preset = "transformer-small"};
  std::string data{};                   // sentences, one a line; what follows a tab is passed over
  std::string json{};                   // a file to write, or nothing
  std::vector<int64_t> beams{1, 4};     // hypotheses kept; 1: greedy
  std::vector<int64_t> batches{1, 32};  // sentences that are worked on together
  int threads = 1;                      // 0: all
  int64_t sentences{64};
  int64_t rounds{5};
  int64_t length{0};
  int64_t max_length{0};
  bool ids{false};

  static void describe(TranslateBenchOptions& o, auto&& field) {
    field("sentences", o.sentences, "of each round; of a file the first ones", Range::within(1, 1000000));
    field("rounds", o.rounds, "that are timed, after one that is not", Range::within(1, 10000));
    field("length", o.length, "tokens that each output is forced to have; 0: the model ends it (random parameters: 24)",
          Range::at_least(0));
    field("max_length", o.max_length, "tokens at most where no length is forced; 0: by the source's length",
          Range::at_least(0));
    field("ids", o.ids, "write the ids of sources and outputs to the JSON file, too");
  }
};

// One row of the table: medians over the rounds.
struct TranslateFigures {
  int64_t beam = 1, batch = 1;
  double seconds = 0;  // for all sentences
  int64_t tokens = 0;  // of all outputs, each without its end
  Ids outputs{};

  double tokens_per_second() const { return static_cast<double>(tokens) / seconds; }
};

// Sentences of a file; without one of heed's grammar, where the model knows all of their words; otherwise random ids.
Ids translate_sources(const decode::Engine&, const TranslateBenchOptions&);

// All rows in turn, round after round, so that they are compared at the same moments.
std::vector<TranslateFigures> measure_translate(const decode::Translator&, const Ids& sources,
                                                const TranslateBenchOptions&);

// Prints a table to standard output. Throws Error, before anything is measured, where the model, the data or the file
// to write are not as they should be.
void bench_translate(const TranslateBenchOptions&);

}  // namespace heed::bench
