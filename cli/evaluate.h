// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed evaluate: how good a trained model is on a file of pairs.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_evaluate(CLI::App& heed, Action& action);

}  // namespace heed::cli
