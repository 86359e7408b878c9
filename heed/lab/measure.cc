// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/measure.h"

#include <algorithm>
#include <chrono>

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

std::vector<std::vector<double>> measured(const std::vector<Trial>& trials, int rounds) {
  std::vector<std::vector<double>> seconds(trials.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < trials.size(); ++i) {
      const double one = seconds_of(trials[i]);
      if (round >= 0) seconds[i].push_back(one);
    }
  }
  return seconds;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double median_ratio(const std::vector<double>& slow, const std::vector<double>& fast) {
  std::vector<double> ratios;
  for (size_t i = 0; i < slow.size(); ++i) ratios.push_back(slow[i] / fast.at(i));
  return median(ratios);
}

}  // namespace heed::lab
