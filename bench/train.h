// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench train`: how long a step of training takes (forward, backward, clipping, AdamW), and how close its
// products come to the machine's FMA peak. Not here: single layers (layers.h), and whether anything is learned.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "heed/base/describe.h"
#include "heed/data/batch.h"
#include "heed/models/options.h"

namespace heed::bench {

struct TrainBenchOptions {
  std::vector<std::string> presets{"transformer-small", "transformer-base", "rnn-attention"};
  std::string json{};  // a file to write, or nothing
  int threads = 1;     // 0: all
  int64_t vocabulary{8000};
  int64_t batch_tokens{4096};
  int64_t length{32};
  int64_t rounds{5};
  double dropout{0.1};
  bool ids{false};
  std::string save{};

  static void describe(TrainBenchOptions& o, auto&& field) {
    field("vocabulary", o.vocabulary, "tokens that source and target share", Range::within(5, 1 << 20));
    field("batch_tokens", o.batch_tokens, "of a batch, on each side", Range::within(1, 1 << 20));
    field("length", o.length, "tokens of each source and of each target, the end included", Range::within(2, 1024));
    field("rounds", o.rounds, "steps that are timed, after one that is not", Range::within(1, 10000));
    field("dropout", o.dropout, "of the model", Range::from_below(0, 1));
    field("ids", o.ids, "write the ids of the batch to the JSON file, too");
    field("save", o.save, "a folder to be written: the model before its first step, of a single preset");
  }
};

// One row of the table.
struct TrainFigures {
  std::string preset{};
  int64_t parameters = 0, tokens = 0;  // tokens: of the targets, in a step
  double first_loss = 0;               // of the first step, smoothing included
  double ms = 0;                       // a step: the median
  Rates rates{};                       // where flops are known
  std::optional<double> flops{};       // of a step

  double tokens_per_second() const { return 1e3 * static_cast<double>(tokens) / ms; }
};

// Random ids, the same in every run, in rows of one length: there is no padding. Throws Error where a batch has no
// room for a row.
data::Batch training_batch(const TrainBenchOptions&);

// Products alone, of a step over the batch: three times those of a forward pass, for a causal mask those of visible
// scores. Nothing for a model whose products are not counted here (an encoder of self-attentive layers).
std::optional<double> training_flops(const models::ModelOptions&, const data::Batch&);

// Throws Error for a preset that does not translate, or that is not known.
TrainFigures measure_training(const std::string& preset, const data::Batch&, const TrainBenchOptions&);

// Prints a table to standard output as it goes. Throws Error, before anything is measured, for options that do not fit.
void bench_train(const TrainBenchOptions&);

}  // namespace heed::bench
