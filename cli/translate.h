// SPDX-License-Identifier: Apache-2.0
#pragma once
// heed translate: text in, text out, with a trained model.
#include "cli/action.h"

namespace CLI {
class App;
}

namespace heed::cli {

void add_translate(CLI::App& heed, Action& action);

}  // namespace heed::cli
