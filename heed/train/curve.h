// SPDX-License-Identifier: Apache-2.0
#pragma once
// The learning curve as a page: losses, BLEU and the learning rate over the steps, from log.jsonl
// (heed/page/report.h).
#include <string>

#include "heed/base/export.h"
#include "heed/train/log.h"

namespace heed::train {

HEED_API std::string curve_page(const std::string& title, const Curves&);

}  // namespace heed::train
