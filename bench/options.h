// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that all benchmarks share.
#include <string>

namespace heed::bench {

struct BenchOptions {
  std::string json;    // a file to write, or nothing
  std::string filter;  // words that must all occur in a row's name
  std::string simd;    // the instruction set to run with; nothing: the best
  int threads = 1;     // 0: all
};

}  // namespace heed::bench
