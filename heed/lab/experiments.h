// SPDX-License-Identifier: Apache-2.0
#pragma once
// All experiments. Each is a file of its own, named after it.
#include <span>
#include <string>

#include "heed/lab/experiment.h"

namespace heed::lab {

Experiment bottleneck();
Experiment cache();
Experiment distance();
Experiment matrix();
Experiment order();
Experiment peek();
Experiment scale();
Experiment heads();
Experiment scores();
Experiment bases();
Experiment relatedness();
Experiment diagonal();
Experiment alignment();
Experiment explanation();
Experiment pronoun();

// In the order in which `heed lab` lists them.
std::span<const Experiment> experiments();
// Throws Error, with the one that may have been meant.
const Experiment& experiment_named(const std::string& name);

}  // namespace heed::lab
