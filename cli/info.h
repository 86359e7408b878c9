// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed info: what a model folder holds.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_info(CLI::App& heed, Action& action);

}  // namespace heed::cli
