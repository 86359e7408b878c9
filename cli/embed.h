// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed embed: text in, vectors out.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_embed(CLI::App& heed, Action& action);

}  // namespace heed::cli
