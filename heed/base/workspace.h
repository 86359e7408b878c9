// SPDX-License-Identifier: Apache-2.0
#pragma once
// Workspace: scratch memory that a caller reserves once and lends to kernels, which never allocate themselves.
// It grows on reserve() and keeps its size; the contents are not preserved. One kernel call at a time may use it.
#include <cstddef>
#include <memory>
#include <utility>

#include "heed/base/export.h"

namespace heed {

class HEED_API Workspace {
 public:
  Workspace() = default;
  explicit Workspace(size_t bytes) { reserve(bytes); }
  // For scratch that is made anew at every call: its memory is kept for the next one (base/allocator.h).
  static Workspace cached(size_t bytes);
  Workspace(Workspace&& other) noexcept : data_(std::move(other.data_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Workspace& operator=(Workspace&& other) noexcept {
    data_ = std::move(other.data_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  void reserve(size_t bytes);
  size_t bytes() const { return bytes_; }
  std::byte* data() const { return data_.get(); }  // aligned to kAlignment

  static constexpr size_t kAlignment = 64;

 private:
  struct Free {
    size_t bytes = 0;
    bool from_cache = false;  // else from the system
    void operator()(std::byte* p) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_{nullptr, Free{}};
  size_t bytes_ = 0;
};

}  // namespace heed
