// SPDX-License-Identifier: Apache-2.0
#pragma once
// --trace FILE and --out FILE, of commands that look at one text: what the model does with it, as a file for programs,
// and as a page for people.
#include <string>
#include <vector>

#include "heed/decode/engine.h"
#include "heed/trace/record.h"

namespace CLI {
class App;
}

namespace heed::cli {

struct TraceFlag {
  std::string file{}, page{};
  std::vector<std::string> heads{};  // of long texts

  void add(CLI::App& app);
  bool given() const { return !file.empty() || !page.empty(); }
  // Throws UsageError where a flag came and there is not one text, or heads are gated.
  void check(size_t texts, bool gated) const;
  // What these flags say of how a text is recorded.
  trace::RecordOptions options(trace::RecordOptions) const;
  // The first as the trace, all of them side by side on the page. Throws Error.
  void save(const std::vector<trace::Trace>&) const;
  // One text, where the flags came. Throws Error.
  void write(const decode::Engine&, const std::string& text, const trace::RecordOptions& = {}) const;
};

}  // namespace heed::cli
