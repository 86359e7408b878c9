// SPDX-License-Identifier: Apache-2.0
#include "heed/train/plan.h"

#include <algorithm>
#include <cmath>

namespace heed::train {

Plan plan_for(double minutes, int64_t warmup, const Pace& pace) {
  constexpr double kUsed = 0.95;
  constexpr double kMost = 1e15;  // steps, so that they are a number
  // The look at the end comes beside those on the way.
  const double left = 60 * minutes * kUsed - pace.seconds - pace.seconds_a_look;
  const double each =
      std::max(1e-9, pace.seconds_a_step + pace.seconds_a_look / static_cast<double>(pace.steps_between_looks));
  const int64_t steps = pace.steps + static_cast<int64_t>(std::clamp(std::floor(left / each), 1.0, kMost));
  return {steps, std::min(warmup, steps / 5)};
}

bool plan_is_due(double minutes, const Pace& pace) {
  constexpr int64_t kSteps = 5;
  constexpr double kShare = 0.02;
  return pace.steps >= kSteps && pace.seconds >= 60 * minutes * kShare;
}

}  // namespace heed::train
