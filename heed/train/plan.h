// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many steps a run does that has a number of minutes in place of a number of steps. It is estimated once, from the
// run's first steps, and kept in its checkpoints: the schedule follows it, and a run that was stopped goes on to the
// same bits. Not here: when a run is over (loop.h).
#include <cstdint>

#include "heed/base/export.h"

namespace heed::train {

// What was measured of a run's beginning.
struct Pace {
  int64_t steps = 0;          // done by now
  double seconds = 0;         // gone by now
  double seconds_a_step = 0;  // without looks at the dev set
  double seconds_a_look = 0;  // at the dev set
  int64_t steps_between_looks = 1;
};

struct Plan {
  int64_t steps = 0;   // the last one; 0: there is no plan yet
  int64_t warmup = 0;  // a fifth of the steps at most
};

// As many steps as fit into the minutes, and one more at least. A twentieth of the time stays free: a machine that has
// other work, too, is now faster and now slower.
HEED_API Plan plan_for(double minutes, int64_t warmup, const Pace& pace);

// Whether enough has been seen to plan: some steps after the first, which allocates, and a fiftieth of the time.
HEED_API bool plan_is_due(double minutes, const Pace& pace);

}  // namespace heed::train
