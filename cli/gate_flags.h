// SPDX-License-Identifier: Apache-2.0
#pragma once
// --gate, which every command that runs a model has: heads that are scaled or switched off.
#include <optional>
#include <string>
#include <vector>

#include "heed/analysis/gates.h"
#include "heed/decode/engine.h"

namespace CLI {
class App;
}

namespace heed::cli {

class GateFlags {
 public:
  void add(CLI::App& app);
  bool given() const { return !texts_.empty(); }
  const std::vector<std::string>& texts() const { return texts_; }
  // Sets the observer of calls on this engine, where a flag came. Throws UsageError for a flag that cannot be read,
  // Error for a layer or head that the model does not have.
  void apply(const decode::Engine&, decode::CallOptions&);

 private:
  std::vector<std::string> texts_;
  std::optional<analysis::Gates> gates_;
};

}  // namespace heed::cli
