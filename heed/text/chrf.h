// SPDX-License-Identifier: Apache-2.0
#pragma once
// chrF2 of a corpus with one reference (Popović 2015), as sacreBLEU computes it by default: runs of 1 to 6 characters,
// no words, recall counts twice as much as precision, space is left out, case matters.
#include <span>
#include <string>

#include "heed/base/export.h"

namespace heed::text {

// 0 to 100.
HEED_API double chrf(std::span<const std::string> hypotheses, std::span<const std::string> references);

}  // namespace heed::text
