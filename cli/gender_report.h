// SPDX-License-Identifier: Apache-2.0
#pragma once
// What heed evaluate --pronouns --paths says: by which path the gender of a pronoun's referent reaches the translation.
#include <string>

#include "cli/json.h"
#include "heed/grammar/gender_paths.h"
#include "heed/grammar/noun_finding.h"

namespace heed::cli {

Json json_of(const grammar::NounFinding&);
Json json_of(const grammar::GenderPaths&);
// Tables for a terminal; of heads and layers, the `top` that flip most.
std::string text_of(const grammar::NounFinding&);
std::string text_of(const grammar::GenderPaths&, size_t top);

}  // namespace heed::cli
