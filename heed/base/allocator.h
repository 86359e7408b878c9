// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for tensors and plans, kept for reuse: a step that has seen its shapes before asks the system for nothing.
// Each thread keeps what was freed on it, so there is nothing to lock; memory may be freed on another thread than it
// came from, and is then kept there. A thread that only ever frees what others allocate has to release it now and then.
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "heed/base/export.h"

namespace heed {

struct AllocatorStats {
  int64_t fresh = 0;       // blocks that had to be asked of the system by this thread, ever
  int64_t kept_bytes = 0;  // freed, and kept for reuse by this thread
};

constexpr size_t kCachedAlignment = 64;  // bytes: a cache line

// At least `bytes` bytes, so aligned; 0 bytes are allowed. Throws std::bad_alloc.
HEED_API void* cached_allocate(size_t bytes);
// With the size that was asked for.
HEED_API void cached_free(void* memory, size_t bytes) noexcept;

HEED_API AllocatorStats allocator_stats();
// Gives what this thread keeps back to the system.
HEED_API void release_cached_memory() noexcept;

// For the standard library's containers and control blocks.
template <class T>
struct CachedAllocator {
  using value_type = T;
  CachedAllocator() = default;
  template <class U>
  CachedAllocator(const CachedAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(cached_allocate(n * sizeof(T)));
  }
  void deallocate(T* p, size_t n) noexcept { cached_free(p, n * sizeof(T)); }
  template <class U>
  bool operator==(const CachedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using CachedVector = std::vector<T, CachedAllocator<T>>;

}  // namespace heed
