#pragma once
// Results below the smallest normal number (1.2e-38) become zero on this thread while it lives. Weights of a softmax
// get that small, where a score is 87 below the largest: with ALiBi, at some distance, every time. Intel's cores take
// over a hundred cycles for each instruction that makes or reads such a number, and all products of that weight do.
// Numbers that come in that small are still read as they are. Where the processor has no such switch, nothing happens.
// Internal.

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
