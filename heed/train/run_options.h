// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a run as text, by name: which of them differ from others, and which may when a run goes on.
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/train/run.h"

namespace heed::train {

struct OptionText {
  std::string path;  // "train.rate"
  std::string text;  // its value as train.json has it, strings without quotes
  std::string name() const { return path.substr(path.rfind('.') + 1); }
};
HEED_API std::vector<OptionText> texts_of(const RunOptions&);

struct OptionDifference {
  std::string path;         // "train.rate"
  std::string before, now;  // as train.json has them, strings without quotes
  std::string name() const { return path.substr(path.rfind('.') + 1); }
};

HEED_API std::vector<OptionDifference> differences(const RunOptions& before, const RunOptions& now);

// The same where the run goes on with new options. Throws Error for an option that the parameters, the tokens or the
// place in the data depend on, with both values.
HEED_API std::vector<OptionDifference> allowed_differences(const RunOptions& before, const RunOptions& now);

}  // namespace heed::train
