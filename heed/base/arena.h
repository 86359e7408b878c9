// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arena: a bump allocator over scratch memory, mostly of a Workspace. Internal.
#include <cstddef>
#include <cstdint>

#include "heed/base/workspace.h"

namespace heed {

// Hands out one array after the other, each aligned as a Workspace is. Over null it hands out null and counts: the code
// that lays out a kernel's scratch also says how much there is of it.
class Arena {
 public:
  explicit Arena(void* begin) : begin_(static_cast<std::byte*>(begin)) {}

  template <class T>
  T* take(int64_t count) {
    T* array = begin_ ? reinterpret_cast<T*>(begin_ + bytes_) : nullptr;
    constexpr size_t kLine = Workspace::kAlignment;
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
    return array;
  }
  size_t bytes() const { return bytes_; }
  int64_t floats() const { return static_cast<int64_t>(bytes_ / sizeof(float)); }

 private:
  std::byte* begin_;
  size_t bytes_ = 0;
};

}  // namespace heed
