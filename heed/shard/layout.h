// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder of a run over shards, and what its files are called:
//
//   manifest.json                  what the run is (manifest.h)
//   shard-00003-of-00008.out       the output of a shard, whole
//   shard-00003-of-00008.json      its record (record.h): the shard is done once this is there
//   shard-00003-of-00008.parts/    only until then: its parts, 000001, 000002 ...
//   shard-00003-of-00008.lock      only while a process works on it
//   manifest.lock                  only while the text is cut
//
// Internal: users name the folder.
#include <cstdint>
#include <cstdio>
#include <string>

namespace heed::shard {

class Layout {
 public:
  explicit Layout(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string manifest() const { return folder_ + "/manifest.json"; }
  std::string manifest_lock() const { return folder_ + "/manifest.lock"; }
  // Shards count from 1.
  std::string output(int64_t shard, int64_t of) const { return folder_ + "/" + stem(shard, of) + ".out"; }
  std::string record(int64_t shard, int64_t of) const { return folder_ + "/" + stem(shard, of) + ".json"; }
  std::string lock(int64_t shard, int64_t of) const { return folder_ + "/" + stem(shard, of) + ".lock"; }
  std::string parts(int64_t shard, int64_t of) const { return folder_ + "/" + stem(shard, of) + ".parts"; }
  std::string part(int64_t shard, int64_t of, int64_t part) const {
    return parts(shard, of) + "/" + padded(part, "%06lld");
  }
  // What the names of a shard's files begin with.
  static std::string stem(int64_t shard, int64_t of) {
    return "shard-" + padded(shard, "%05lld") + "-of-" + padded(of, "%05lld");
  }

 private:
  static std::string padded(int64_t number, const char* format) {
    char digits[32];
    std::snprintf(digits, sizeof digits, format, static_cast<long long>(number));
    return digits;
  }

  std::string folder_;
};

}  // namespace heed::shard
