// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed merge: the shards of a corpus in, one text out.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_merge(CLI::App& heed, Action& action);

}  // namespace heed::cli
