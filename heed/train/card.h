// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model card that training writes: README.md of the folder.
#include <string>

#include "heed/base/export.h"
#include "heed/train/report.h"
#include "heed/train/run.h"

namespace heed::train {

struct CardFacts {
  int64_t parameters = 0, tokens = 0;  // tokens: of the source's tokenizer
  std::string data, dev;               // what they hold: "1 pair, 12 bytes, hash ..."
};

HEED_API std::string model_card(const RunOptions&, const CardFacts&, const RunResult&);

}  // namespace heed::train
