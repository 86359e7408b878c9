// SPDX-License-Identifier: Apache-2.0
// The manifest of a run over shards, and the records of its outputs.
#include "heed/shard/manifest.h"

#include "fuzz/check.h"
#include "heed/shard/record.h"

namespace heed::fuzz {
namespace {

void read_manifest(std::span<const std::byte> text) {
  const shard::Manifest manifest = shard::manifest_from_json(text_of(text), "input");
  require(shard::manifest_from_json(shard::to_json(manifest), "written") == manifest, "what is written is read");
}

// Its message shows what the file has.
void compare_manifest(std::span<const std::byte> text) {
  shard::check_same_run(shard::manifest_from_json(text_of(text), "input"), {}, "folder");
}

void read_record(std::span<const std::byte> text) {
  const shard::Record record = shard::record_from_json(text_of(text), "input");
  require(shard::record_from_json(shard::to_json(record), "written") == record, "what is written is read");
}

}  // namespace
}  // namespace heed::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  heed::fuzz::try_to_read(input, heed::fuzz::read_manifest);
  heed::fuzz::try_to_read(input, heed::fuzz::compare_manifest);
  heed::fuzz::try_to_read(input, heed::fuzz::read_record);
  return 0;
}
