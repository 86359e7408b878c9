// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed tag: a tag for each word of a text.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_tag(CLI::App& heed, Action& action);

}  // namespace heed::cli
