// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed man: the manual page, made from what the commands say of themselves.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_manual(CLI::App& heed, Action& action);

}  // namespace heed::cli
