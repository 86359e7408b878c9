// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/merge.h"

#include <algorithm>

#include "heed/base/count.h"
#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/shard/fields.h"
#include "heed/shard/layout.h"
#include "heed/shard/manifest.h"
#include "heed/shard/outputs.h"
#include "heed/shard/sha256.h"

namespace heed::shard {
namespace {

// "2, 5, 7 and 40 others"
std::string listed(const std::vector<int64_t>& shards) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(shards.size(), kShown); ++i) text += (i ? ", " : "") + std::to_string(shards[i]);
  const int64_t more = std::ssize(shards) - static_cast<int64_t>(kShown);
  return more > 0 ? text + " and " + grouped(more) + " more" : text;
}

void check_is_output(const Record& record, std::span<const std::byte> bytes, const std::string& path) {
  Sha256 sum;
  if (std::ssize(bytes) == record.bytes) sum.add(bytes);
  if (std::ssize(bytes) == record.bytes && sum.hex() == record.sha256) return;
  throw Error(path + ": is not what was written, expected " + counted(record.bytes, "byte") + " with sha256 " +
              shown(record.sha256) + ": work on shard " + std::to_string(record.shard) + " again");
}

}  // namespace

Merge::Merge(const std::string& folder) : folder_(folder) {
  const Layout layout(folder);
  const std::string text = read_manifest(layout), run = sha256_of(text);
  const Manifest manifest = manifest_from_json(text, layout.manifest());
  const int64_t of = std::ssize(manifest.shards);
  std::vector<int64_t> missing;
  for (int64_t shard = 1; shard <= of; ++shard) {
    const std::optional<Record> record = read_record(layout, run, shard, of);
    if (!record) {
      missing.push_back(shard);
      continue;
    }
    if (record->lines != manifest.shards[static_cast<size_t>(shard - 1)].lines) {
      throw Error(layout.record(shard, of) + ": has " + counted(record->lines, "line") + ", expected " +
                  grouped(manifest.shards[static_cast<size_t>(shard - 1)].lines) + " as the manifest");
    }
    records_.push_back(*record);
  }
  if (missing.empty()) return;
  throw Error("folder '" + folder + "': " + grouped(std::ssize(missing)) + " of " + counted(of, "shard") +
              (missing.size() == 1 ? " is" : " are") + " not done, expected all: " + listed(missing));
}

int64_t Merge::lines() const {
  int64_t all = 0;
  for (const Record& record : records_) all += record.lines;
  return all;
}

int64_t Merge::bytes() const {
  int64_t all = 0;
  for (const Record& record : records_) all += record.bytes;
  return all;
}

int64_t Merge::skipped() const {
  int64_t all = 0;
  for (const Record& record : records_) all += record.skipped;
  return all;
}

const std::string& Merge::first_error() const {
  const auto first = std::find_if(records_.begin(), records_.end(), [](const Record& one) { return one.skipped > 0; });
  return (first == records_.end() ? records_.front() : *first).first_error;
}

void Merge::write(const std::function<void(std::span<const std::byte>)>& write) const {
  const Layout layout(folder_);
  for (const Record& record : records_) {
    const std::string path = layout.output(record.shard, shards());
    const MappedFile output(path);
    check_is_output(record, output.bytes(), path);
    write(output.bytes());
  }
}

void merge_to(const Merge& merge, const std::string& path) {
  AtomicFile file(path);
  merge.write([&](std::span<const std::byte> bytes) { file.append(bytes); });
  file.commit();
}

}  // namespace heed::shard
