// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench ring`: ring attention (heed/dist/ring_attention.h) beside the same sequence in one process: how far apart
// the results are, times, bytes sent, memory and work of each rank. Ranks are threads of this process or, where it was
// started by mpirun or srun, processes.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/dist/communicator.h"

namespace heed::bench {

struct RingBenchOptions {
  std::string json{};  // a file to write, or nothing
  int threads = 1;     // of each rank; 0: all
  int64_t ranks{4};
  int64_t length{65536};
  int64_t heads{2};
  int64_t kv_heads{1};
  int64_t width{64};
  int64_t window{0};
  int64_t rounds{1};
  bool full{false};
  bool alone{false};

  static void describe(RingBenchOptions& o, auto&& field) {
    field("ranks", o.ranks, "threads of this process that are ranks; by mpirun or srun: as many as were started",
          Range::within(1, 64));
    field("length", o.length, "rows of the sequence", Range::within(2, 1 << 24));
    field("heads", o.heads, "of queries", Range::within(1, 1024));
    field("kv_heads", o.kv_heads, "of keys and values, a divisor of the heads", Range::within(1, 1024));
    field("width", o.width, "of a head", Range::within(1, 2048));
    field("window", o.window, "keys that a query sees, itself among them; 0: all", Range::within(0, 1 << 24));
    field("rounds", o.rounds, "of all passes, of which the medians are taken", Range::within(1, 1000));
    field("full", o.full, "without a causal mask");
    field("alone", o.alone, "without the comparison: the sequence is in no process as a whole");
  }
};

struct RingPassFigures {
  std::string pass{};                   // "forward", "backward", "received"
  double seconds = 0;                   // until the last rank was done
  std::optional<double> one_process{};  // seconds
};

// Numbers that are sent to the first rank as they are.
struct RingRankFigures {
  int64_t rows = 0;
  double pairs = 0;           // of a query and a key
  double megabytes_sent = 0;  // over all rounds, of 10^6 bytes
  double megabytes = 0;       // at most: arguments, results, gradients and what passes hold beside them
  double seconds_waited = 0;  // for messages, over all rounds
};

struct RingDifference {
  std::string of{};    // "out", "dq" ...
  double most = 0;     // of the difference, over all elements
  double largest = 0;  // element of it, by size
};

struct RingReport {
  std::vector<RingPassFigures> passes{};
  std::vector<RingRankFigures> ranks{};
  std::vector<RingDifference> differences{};  // none where it is not compared
  int one_process_threads = 0;
  double one_process_megabytes = 0;
};

// Every rank calls it with the same options; what comes back is complete on rank 0. Throws Error for options that do
// not fit each other.
RingReport measure_ring(dist::Communicator&, const RingBenchOptions&);

// Prints tables to standard output, once. Throws Error.
void bench_ring(const RingBenchOptions&);

}  // namespace heed::bench
