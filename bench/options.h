// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that all benchmarks share.
#include <string>

namespace heed::bench {

struct BenchOptions {
  std::string json;    // a file to write, or nothing
  std::string filter;  // a row's name, or words that must all occur in it
  std::string simd;    // the instruction set to run with; nothing: the best
  int threads = 1;     // 0: all
  int rounds = 0;      // of a row; 0: those of measure.h, until enough of them were quiet
};

}  // namespace heed::bench
