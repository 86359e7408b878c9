// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench ranks`: what training on several ranks costs beside computing, how much of it is hidden, and a model of a
// step's time on ranks that are not here. Run by mpirun; alone, it measures what one process does.
// Not here: training itself (train.h).
#include <cstdint>
#include <string>
#include <vector>

#include "bench/train.h"
#include "heed/base/describe.h"
#include "heed/dist/communicator.h"

namespace heed::bench {

struct RanksBenchOptions {
  std::string preset{"transformer-small"};
  int threads = 1;  // of each rank
  int64_t vocabulary{8000};
  int64_t batch_tokens{2048};
  int64_t length{32};
  int64_t accumulate{4};
  int64_t rounds{5};

  static void describe(RanksBenchOptions& o, auto&& field) {
    field("preset", o.preset, "the model, with random parameters");
    field("vocabulary", o.vocabulary, "tokens that source and target share", Range::within(5, 1 << 20));
    field("batch_tokens", o.batch_tokens, "of a batch, on each side", Range::within(1, 1 << 20));
    field("length", o.length, "tokens of each source and of each target", Range::within(2, 1024));
    field("accumulate", o.accumulate, "batches a step, of all ranks", Range::within(1, 10'000));
    field("rounds", o.rounds, "steps that are timed, after one that is not", Range::within(1, 10'000));
  }
};

// What a step is made of, in seconds. Of a rank while all others compute, too.
struct StepCosts {
  double batch = 0;      // forward and backward of one
  double rest = 0;       // norm, optimizer
  double bytes = 0;      // of all gradients
  double latency = 0;    // of a small message, there
  double message = 0;    // that many small messages take each, one behind the other
  double bandwidth = 0;  // bytes a second, in both directions at once
  double hides = 0;      // of the time of a batch, the share in which gradients can travel: backward
};

// Seconds that gradients travel, of a step on so many ranks.
double travel_seconds(const StepCosts&, int64_t ranks);
// Seconds of a step in which each rank has so many batches.
double step_seconds(const StepCosts&, int64_t ranks, int64_t batches, bool overlap);

// The first rank prints a table to standard output as it goes.
void bench_ranks(const RanksBenchOptions&, dist::Communicator&);

}  // namespace heed::bench
