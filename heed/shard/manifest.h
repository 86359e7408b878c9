// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run over shards is: everything that its output depends on, and where each shard lies in the text. It is
// written once, by whoever comes first, and never changed: all others compare themselves with it. Not here: which
// shards are done; each says so itself (record.h).
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/base/export.h"
#include "heed/shard/cut.h"

namespace heed::shard {

// A name and its value, as messages show them: "--beam", "4". Without a value it is on.
using Option = std::pair<std::string, std::string>;

struct InputFile {
  std::string path{};  // as the first one named it: on other machines it may lie elsewhere
  int64_t bytes = 0;   // of its text
  bool operator==(const InputFile&) const = default;
};

struct Manifest {
  std::string version{}, command{};  // of heed; what is done with the lines: "translate"
  std::string model{};               // model_id() of the model's folder
  std::vector<Option> options{};     // that change the output
  int64_t part_lines = 0;            // that a part of a shard has
  std::vector<InputFile> inputs{};
  std::vector<Piece> shards{};

  bool operator==(const Manifest&) const = default;
};

inline constexpr int64_t kMostPartLines = int64_t{1} << 30;

HEED_API std::string to_json(const Manifest&);
// Throws Error for what no manifest of this version looks like; `name` is what messages call the text.
HEED_API Manifest manifest_from_json(std::string_view text, const std::string& name);

// Throws Error where a run that would go on in this folder is another one than was begun, by the first thing that
// differs: "folder 'out' was begun with --beam 4, now --beam is 2: expected the same, or another folder". Of the shards
// their number is compared alone: `now` need not have cut the text.
HEED_API void check_same_run(const Manifest& begun, const Manifest& now, const std::string& folder);

}  // namespace heed::shard
