// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench generate`: how fast a language model reads a prompt in one pass, and goes on from it token by token.
#include <cstdint>
#include <string>
#include <vector>

#include "bench/decoding.h"
#include "heed/base/describe.h"
#include "heed/decode/engine.h"

namespace heed::bench {

struct GenerateBenchOptions {
  SubjectOptions subject{.preset = "lm-small"};
  std::string json{};                               // a file to write, or nothing
  std::vector<int64_t> lengths{16, 128, 512, 960};  // of prompts
  std::vector<int64_t> batches{1, 8};               // prompts that are worked on together
  int threads = 1;                                  // 0: all
  int64_t steps{32};
  int64_t rounds{5};

  static void describe(GenerateBenchOptions& o, auto&& field) {
    field("steps", o.steps, "tokens after each prompt", Range::within(1, 100000));
    field("rounds", o.rounds, "that are timed, after one that is not", Range::within(1, 10000));
  }
};

// One row of the table: medians over the rounds.
struct GenerateFigures {
  int64_t batch = 1, length = 0, steps = 0;
  double prompt_seconds = 0;  // the prompt in one pass
  double steps_seconds = 0;   // all steps

  double prompt_tokens_per_second() const { return static_cast<double>(batch * length) / prompt_seconds; }
  double steps_tokens_per_second() const { return static_cast<double>(batch * steps) / steps_seconds; }
  double step_ms() const { return 1e3 * steps_seconds / static_cast<double>(steps); }
};

// All rows in turn, round after round. Throws Error where a prompt and its steps are longer than the model can take.
std::vector<GenerateFigures> measure_generate(const decode::Engine&, const GenerateBenchOptions&);

// Prints a table to standard output. Throws Error, before anything is measured, where the model, the lengths or the
// file to write are not as they should be.
void bench_generate(const GenerateBenchOptions&);

}  // namespace heed::bench
