// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench`: benchmarks of what this build can do on this machine.
#include <CLI/App.hpp>

#include "cli/action.h"

namespace heed::cli {

void add_bench(CLI::App& heed, Action& action);

}  // namespace heed::cli
