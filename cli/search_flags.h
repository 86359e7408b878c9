// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the flags of a search mean together.
#include "cli/flags.h"
#include "heed/decode/constraints.h"
#include "heed/decode/search.h"

namespace heed::cli {

// More results than hypotheses are kept: as many are kept, unless --beam says otherwise. Throws UsageError where flags
// contradict each other, or one would be ignored.
void settle_search(const Flags& flags, decode::SearchOptions& options);

// --require and --forbid, each as often as wished.
void add_phrases(CLI::App& app, decode::ConstraintTexts& texts);
// Throws UsageError where the search cannot keep to them.
void check_phrases(const decode::ConstraintTexts& texts, const decode::SearchOptions& options);

}  // namespace heed::cli
