// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is kept of output that has been written: a shard's, in a file beside it, or a part's, in its first line. A sum
// tells whether the bytes are still those.
#include <cstdint>
#include <string>
#include <string_view>

#include "heed/base/export.h"

namespace heed::shard {

struct Record {
  std::string run{};            // SHA-256 of the manifest
  int64_t shard = 0, part = 0;  // from 1; part 0: all of the shard
  int64_t lines = 0;            // of the input
  int64_t bytes = 0;            // of the output
  std::string sha256{};         // of the output
  int64_t skipped = 0;          // lines that could not be worked on
  std::string first_error{};    // why the first of them could not

  bool operator==(const Record&) const = default;
};

// On one line, without its end.
HEED_API std::string to_json(const Record&);
// Throws Error; `name` is what messages call the text.
HEED_API Record record_from_json(std::string_view text, const std::string& name);

}  // namespace heed::shard
