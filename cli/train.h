// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed train: from a TSV file to a model folder, with a progress bar.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_train(CLI::App& heed, Action& action);

}  // namespace heed::cli
