// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed explain: what a model looks at while it translates a sentence.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_explain(CLI::App& heed, Action& action);

}  // namespace heed::cli
