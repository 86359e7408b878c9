// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed corpus`: sentences of the built-in English-Spanish grammar.
#include <CLI/App.hpp>

#include "cli/action.h"

namespace heed::cli {

void add_corpus(CLI::App& heed, Action& action);

}  // namespace heed::cli
