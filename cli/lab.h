// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed lab`: claims about attention, put to the test.
#include <CLI/App.hpp>

#include "cli/action.h"

namespace heed::cli {

void add_lab(CLI::App& heed, Action& action);

}  // namespace heed::cli
