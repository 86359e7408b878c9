// SPDX-License-Identifier: Apache-2.0
#pragma once
// FlushDenormals: while it lives, denormal results (below 1.2e-38) become zero on this thread (FTZ). Softmax weights
// get that small where a score is 87 below the maximum: with ALiBi, at some distance, every time. Intel's cores take
// over a hundred cycles for each instruction that produces or reads a denormal, and all products of that weight do.
// Denormal inputs are still read as they are (no DAZ). Where the processor has no such mode, nothing happens. Internal.

namespace heed::kernels {

class FlushDenormals {
 public:
  FlushDenormals() noexcept;
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_ = 0;
};

}  // namespace heed::kernels
