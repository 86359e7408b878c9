// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fast our own tanh runs over numbers that stay in L1, by all workers of a pool at once: what attention with an
// additive score, which evaluates one for each column of each pair, is held against.
#include <cstdint>

#include "heed/base/parallel.h"
#include "heed/base/workspace.h"

namespace heed::bench {

// y[0, n) <- tanh(x[0, n)) by heed/kernels/tanh-inl.h. n is a multiple of 64; both are aligned to 64 bytes.
void tanh_row(const float* x, float* y, int64_t n);

class TanhProbe {
 public:
  TanhProbe();
  void run(Parallel&);
  static int64_t count(const Parallel&);  // of numbers that a run goes through

 private:
  Workspace numbers_;
};

}  // namespace heed::bench
