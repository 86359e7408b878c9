// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed shortlist: which target tokens are likely for each source token, for heed translate --shortlist.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_shortlist(CLI::App& heed, Action& action);

}  // namespace heed::cli
