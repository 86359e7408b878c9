// SPDX-License-Identifier: Apache-2.0
#pragma once
// The learning curve as a page: losses and the learning rate over the steps, drawn from log.jsonl. One HTML file that
// needs nothing else, in light and dark.
#include <string>

#include "heed/base/export.h"
#include "heed/train/log.h"

namespace heed::train {

HEED_API std::string curve_page(const std::string& title, const Curves&);

}  // namespace heed::train
