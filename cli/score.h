// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed score: how likely a model takes given output to be.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_score(CLI::App& heed, Action& action);

}  // namespace heed::cli
