// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed completion: scripts that let a shell finish commands, flags and their values.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

// Last of all commands: it tells of those that are there.
void add_completion(CLI::App& heed, Action& action);

}  // namespace heed::cli
