// SPDX-License-Identifier: Apache-2.0
#pragma once
// A folder that something has gone wrong with: bytes that flipped, files that were cut, lost or swapped, numbers that
// nobody meant, tensors of other names, shapes and types.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heed/base/rng.h"

namespace heed::fuzz {

struct FolderFile {
  enum class Kind : uint8_t { regular, folder, pipe, loop };  // loop: a symbolic link to itself
  Kind kind{Kind::regular};
  std::string bytes{};
};
using FolderFiles = std::map<std::string, FolderFile>;  // by name

FolderFiles read_files(const std::string& folder);
// The folder has these files and no others after that.
void write_files(const FolderFiles&, const std::string& folder);

// Changes files in one to three ways, and says how. `others` are sound folders to take parts from.
std::string corrupt(FolderFiles&, const std::vector<FolderFiles>& others, Rng&);

}  // namespace heed::fuzz
