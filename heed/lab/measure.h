// SPDX-License-Identifier: Apache-2.0
#pragma once
// Times of things that are to be compared: they run in turn, round after round, so that what else the machine does
// meets all of them. Not here: benchmarks, which also ask how close the machine's limits are (bench/).
#include <functional>
#include <vector>

namespace heed::lab {

using Trial = std::function<void()>;

// Seconds of one call of each, a vector with an entry a round; the first round is not counted. A call is repeated until
// it has taken 2 ms.
std::vector<std::vector<double>> measured(const std::vector<Trial>&, int rounds);
double median(std::vector<double> values);
// The median of the ratios within each round: how many times as long `slow` takes.
double median_ratio(const std::vector<double>& slow, const std::vector<double>& fast);

}  // namespace heed::lab
