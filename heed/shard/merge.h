// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output of a run over shards (run.h) as one text: that of the whole corpus, whatever the number of shards. Every
// shard is compared with its sum.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/shard/record.h"

namespace heed::shard {

class HEED_API Merge {
 public:
  // Throws Error where shards are missing, and says which, or where one is of another run.
  explicit Merge(const std::string& folder);

  int64_t shards() const { return std::ssize(records_); }
  int64_t lines() const;    // of the input
  int64_t bytes() const;    // of the output
  int64_t skipped() const;  // lines that could not be worked on
  const std::string& first_error() const;

  // Passes all of the output to `write`, piece by piece. Throws Error, after some of it was passed on, where a shard's
  // bytes are not what was written.
  void write(const std::function<void(std::span<const std::byte>)>& write) const;

 private:
  std::string folder_;
  std::vector<Record> records_;
};

// To a file, which appears when it is whole.
HEED_API void merge_to(const Merge&, const std::string& path);

}  // namespace heed::shard
