// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed convert: a model folder with smaller weights, for inference.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_convert(CLI::App& heed, Action& action);

}  // namespace heed::cli
