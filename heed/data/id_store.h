// SPDX-License-Identifier: Apache-2.0
#pragma once
// Token ids of a corpus, one after the other: in memory, or, beyond `most` bytes, in a temporary file, so that a corpus
// may be larger than memory.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heed/base/file.h"

namespace heed::data {

class IdStore {
 public:
  explicit IdStore(int64_t most_bytes) : most_(most_bytes / static_cast<int64_t>(sizeof(int32_t))) {}

  int64_t size() const { return spilled_ + std::ssize(ids_); }
  void append(std::span<const int32_t> ids) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    if (std::ssize(ids_) > most_) spill();
  }
  // After the last append() and before the first at().
  void finish() {
    if (!file_) return;
    spill();
    ids_.shrink_to_fit();
    mapped_ = reinterpret_cast<const int32_t*>(file_->map().data());
  }
  const int32_t* at(int64_t place) const { return (mapped_ ? mapped_ : ids_.data()) + place; }
  bool in_a_file() const { return file_ != nullptr; }

 private:
  void spill() {
    if (!file_) file_ = std::make_unique<SpillFile>();
    file_->append(std::as_bytes(std::span(ids_)));
    spilled_ += std::ssize(ids_);
    ids_.clear();
  }

  int64_t most_, spilled_ = 0;
  std::vector<int32_t> ids_;
  std::unique_ptr<SpillFile> file_;
  const int32_t* mapped_ = nullptr;
};

}  // namespace heed::data
