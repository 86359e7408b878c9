// SPDX-License-Identifier: Apache-2.0
#pragma once
// Times of things that are to be compared: they run in turn, round after round, and of each the fastest call counts, as
// whatever else the machine does can only make a call slower. Not here: benchmarks, which also ask how close the
// machine's limits are (bench/).
#include <functional>
#include <vector>

namespace heed::lab {

using Trial = std::function<void()>;

// Seconds of the fastest call of each; the first round is not counted. A call is repeated until it has taken 2 ms, and
// counts as their mean.
std::vector<double> fastest(const std::vector<Trial>&, int rounds);

}  // namespace heed::lab
