// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line as data: every command with its flags, read from the parser itself, so that completion and manual
// cannot tell of others.
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace heed::cli {

struct FlagOutline {
  std::string name;   // "--beam"; of what stands without a flag: "files"
  std::string value;  // "FILE", "N >= 1", "loss|bleu"; empty: it takes none
  std::string help, usual;
  bool positional = false;

  std::vector<std::string> choices() const;  // of "loss|bleu"; none where anything may come
  bool is_folder() const { return value == "DIR"; }
};

struct CommandOutline {
  std::string path;  // "bench attention"; empty: heed itself
  std::string help;
  std::vector<FlagOutline> flags;
  std::vector<std::string> commands;  // inside it
};

// The first sentence of a command's help, on one line.
std::string summary_of(const std::string& help);

// heed itself, then each command before those inside it.
std::vector<CommandOutline> outline_of(const CLI::App& heed);

}  // namespace heed::cli
