// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/measure.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace heed::lab {
namespace {

double seconds_of(const Trial& trial) {
  using Clock = std::chrono::steady_clock;
  constexpr double kShortest = 2e-3;
  const Clock::time_point begin = Clock::now();
  for (int calls = 1;; ++calls) {
    trial();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds >= kShortest) return seconds / calls;
  }
}

}  // namespace

std::vector<double> fastest(const std::vector<Trial>& trials, int rounds) {
  std::vector<double> best(trials.size(), std::numeric_limits<double>::infinity());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < trials.size(); ++i) {
      const double seconds = seconds_of(trials[i]);
      if (round >= 0) best[i] = std::min(best[i], seconds);
    }
  }
  return best;
}

}  // namespace heed::lab
