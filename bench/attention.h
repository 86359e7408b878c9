#pragma once
// `heed bench attention`: how close attention comes to what the machine can do, and to attention without fusion.
#include <string>

namespace heed::bench {

struct AttentionBenchOptions {
  std::string json;    // a file to write, or nothing
  std::string filter;  // words that must all occur in a row's name
  int threads = 1;     // 0: all
};

// Prints a table to standard output as it goes. Throws Error, before anything is measured, where no row is left or the
// file cannot be written.
void bench_attention(const AttentionBenchOptions&);

}  // namespace heed::bench
