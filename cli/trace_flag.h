// SPDX-License-Identifier: Apache-2.0
#pragma once
// --trace FILE, of commands that look at one text: what the model does with it, as a file for the viewer and for
// programs.
#include <string>
#include <vector>

#include "heed/decode/engine.h"
#include "heed/trace/record.h"

namespace CLI {
class App;
}

namespace heed::cli {

struct TraceFlag {
  std::string file{};
  std::vector<std::string> heads{};  // of long texts

  void add(CLI::App& app);
  bool given() const { return !file.empty(); }
  // Throws UsageError where the flag came and there is not one text, or heads are gated.
  void check(size_t texts, bool gated) const;
  // Nothing where the flag did not come. Throws Error.
  void write(const decode::Engine&, const std::string& text, trace::RecordOptions = {}) const;
};

}  // namespace heed::cli
