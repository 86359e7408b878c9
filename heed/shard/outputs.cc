// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/outputs.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "heed/base/error.h"
#include "heed/shard/sha256.h"

namespace heed::shard {
namespace {

constexpr uint64_t kMostManifestBytes = uint64_t{1} << 26, kMostRecordBytes = uint64_t{1} << 16;

std::string read_text(const std::string& path, uint64_t limit) {
  const std::vector<std::byte> bytes = read_file(path, limit);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string sum_of(std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

}  // namespace

void write_text(const std::string& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

std::string read_manifest(const Layout& layout) {
  if (!std::filesystem::exists(layout.manifest())) {
    throw Error("folder '" + layout.folder() + "' has no manifest.json, expected the output of a run over shards");
  }
  return read_text(layout.manifest(), kMostManifestBytes);
}

std::optional<Record> read_record(const Layout& layout, const std::string& run, int64_t shard, int64_t of) {
  const std::string path = layout.record(shard, of);
  if (!std::filesystem::exists(path)) return std::nullopt;
  Record record = record_from_json(read_text(path, kMostRecordBytes), path);
  if (record.run != run || record.shard != shard || record.part != 0) {
    throw Error(path + ": is of another run, expected the one of " + layout.manifest());
  }
  return record;
}

std::optional<Record> whole_output(const Layout& layout, const std::string& run, int64_t shard, int64_t of) {
  try {
    std::optional<Record> record = read_record(layout, run, shard, of);
    if (!record) return std::nullopt;
    const MappedFile output(layout.output(shard, of));
    if (std::ssize(output.bytes()) != record->bytes || sum_of(output.bytes()) != record->sha256) return std::nullopt;
    return record;
  } catch (const Error&) {  // it is broken or gone: made again, it is right
    return std::nullopt;
  }
}

PartFile::PartFile(const std::string& path) : file_(path) {
  const auto bytes = file_.bytes();
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{'\n'});
  if (end == bytes.end()) throw Error(path + ": has no line, expected the record of a part");
  const auto head = bytes.first(static_cast<size_t>(end - bytes.begin()));
  record_ = record_from_json({reinterpret_cast<const char*>(head.data()), head.size()}, path);
  payload_ = bytes.subspan(head.size() + 1);
}

PartState state_of_part(const std::string& path, const Record& expected) {
  if (!std::filesystem::exists(path)) return PartState::missing;
  try {
    const PartFile part(path);
    const Record& found = part.record();
    const bool same = found.run == expected.run && found.shard == expected.shard && found.part == expected.part &&
                      found.lines == expected.lines && found.bytes == std::ssize(part.payload()) &&
                      found.sha256 == sum_of(part.payload());
    return same ? PartState::whole : PartState::broken;
  } catch (const Error&) {
    return PartState::broken;
  }
}

void write_part(const std::string& path, Record record, const std::string& text) {
  record.bytes = std::ssize(text);
  record.sha256 = sha256_of(text);
  AtomicFile file(path);
  const std::string head = to_json(record) + "\n";
  for (const std::string& piece : {std::cref(head), std::cref(text)}) file.append(std::as_bytes(std::span(piece)));
  file.commit();
}

}  // namespace heed::shard
