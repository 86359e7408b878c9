// SPDX-License-Identifier: Apache-2.0
#pragma once
// What this machine can do at this moment: fused multiply-adds and reads, by all workers of a pool at once. Every
// figure of a benchmark is a ratio to a sample of these taken next to it, because the clock and the neighbours change.
#include <cstddef>
#include <span>
#include <string>

#include "heed/base/parallel.h"
#include "heed/base/workspace.h"

namespace heed::bench {

using Bytes = std::span<const std::byte>;

// GFLOP/s of twelve independent chains of multiply-adds in registers, over about a millisecond.
double sample_fma_gflops(Parallel&);

// What multiply-adds do at this moment, in registers and on operands from L1.
struct Moment {
  double fma_gflops = 0, tile_gflops = 0;
  // Both are hot loops of one program, and on an idle core both run at its peak. Where they do not, somebody else is on
  // the same core (a neighbour on its other hardware thread, as on shared hosts) and takes slots of its load ports:
  // multiply-adds in registers do not notice, and everything that reads does.
  bool quiet() const { return tile_gflops >= 0.97 * fma_gflops; }
};
Moment sample_moment(Parallel&);

// Reads every byte once and does nothing with it.
void read_all(std::span<const Bytes>, Parallel&);

// Reads a buffer of its own, of the size of decode's keys and values in the grid: 16 MiB.
class ReadProbe {
 public:
  ReadProbe();
  double sample_gbps(Parallel&);

 private:
  Workspace buffer_;
};

std::string cpu_model();

}  // namespace heed::bench
