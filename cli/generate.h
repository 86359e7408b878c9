// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed generate: text from a language model.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_generate(CLI::App& heed, Action& action);

}  // namespace heed::cli
