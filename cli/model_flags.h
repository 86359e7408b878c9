// SPDX-License-Identifier: Apache-2.0
#pragma once
// The flags of `heed train` that make a model of one's own: each field of the families' options (heed/models/options.h)
// over a preset, or over a file (--config). And which of them contradict going on from another model (--init).
#include <string>
#include <vector>

#include "cli/flags.h"
#include "heed/train/run.h"

namespace heed::cli {

class ModelFlags {
 public:
  // After all other flags: a name that is taken already stays theirs.
  void add(CLI::App& app);
  // Sets options.model where a flag came. `others` are the run's other flags that came. Throws UsageError.
  void apply(train::RunOptions& options, const std::vector<std::string>& others, bool resumed) const;

 private:
  std::vector<std::string> given() const;

  Flags flags_;
  std::string config_;
};

}  // namespace heed::cli
