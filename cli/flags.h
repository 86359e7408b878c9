// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flags from the one list of an option struct's fields (heed/base/describe.h): --batch-tokens, and for a field of a
// struct inside, its own name: --rate. A value that does not fit throws, and the error says what was expected.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heed/base/describe.h"
#include "heed/io/config.h"

namespace CLI {
class App;
}

namespace heed::cli {

// --threads, which every command that computes has.
void add_threads(CLI::App& app, int& threads);

class Flags {
 public:
  // Adds a flag to `app` for every field; defaults are what the fields hold now.
  void add(CLI::App& app, const io::ShowFields& fields);
  // Sets those fields whose flags came. Throws UsageError.
  void apply(const io::ShowFields& fields) const;
  // The flags that came: "--rate".
  std::vector<std::string> given() const;
  bool has(const std::string& flag) const;  // it came

 private:
  std::map<std::string, std::string> values_;  // by flag; empty: did not come
};

}  // namespace heed::cli
