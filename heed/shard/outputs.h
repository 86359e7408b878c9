// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files of a run as they are read back: each is compared with its record before it is believed. Internal.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "heed/base/file.h"
#include "heed/shard/layout.h"
#include "heed/shard/record.h"

namespace heed::shard {

void write_text(const std::string& path, std::string_view text);

// Throws Error where there is none.
std::string read_manifest(const Layout&);

// The record beside the output of a shard. None: there is none. Throws Error where it is broken or of another run.
std::optional<Record> read_record(const Layout&, const std::string& run, int64_t shard, int64_t of);
// The record of a shard whose output is there, with the bytes that it says. None: it has to be made.
std::optional<Record> whole_output(const Layout&, const std::string& run, int64_t shard, int64_t of);

// A part: its record on the first line, then what was made of its lines.
class PartFile {
 public:
  // Throws Error where it cannot be read, or its first line is no record.
  explicit PartFile(const std::string& path);

  const Record& record() const { return record_; }
  std::span<const std::byte> payload() const { return payload_; }

 private:
  MappedFile file_;
  Record record_;
  std::span<const std::byte> payload_;
};

enum class PartState : uint8_t { missing, whole, broken };
// Of the part that `expected` says, as far as it is known before the lines are worked on.
PartState state_of_part(const std::string& path, const Record& expected);
// Adds bytes and sum to the record.
void write_part(const std::string& path, Record record, const std::string& text);

}  // namespace heed::shard
