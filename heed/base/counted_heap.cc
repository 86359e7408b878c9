// SPDX-License-Identifier: Apache-2.0
#include "heed/base/counted_heap.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocated{0}, alive{0}, peak{0};

// The size is stored before each block, a whole alignment away from it.
void* allocate(size_t bytes, size_t alignment) {
  const size_t room = std::max(alignment, alignof(std::max_align_t));
  auto* block = static_cast<std::byte*>(std::aligned_alloc(room, (bytes + room - 1) / room * room + room));
  if (!block) throw std::bad_alloc();
  *reinterpret_cast<size_t*>(block + room - sizeof(size_t)) = bytes;
  const auto now = alive.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
  for (int64_t old = peak; old < now && !peak.compare_exchange_weak(old, now);) continue;
  ++allocated;
  return block + room;
}

void release(void* p, size_t alignment) noexcept {
  if (!p) return;
  const size_t room = std::max(alignment, alignof(std::max_align_t));
  alive -= static_cast<int64_t>(*(static_cast<size_t*>(p) - 1));
  std::free(static_cast<std::byte*>(p) - room);
}

}  // namespace

namespace heed::counted_heap {

int64_t allocations() { return allocated; }
int64_t alive_bytes() { return alive; }
int64_t peak_bytes() { return peak; }
void reset_peak() { peak = alive.load(); }

}  // namespace heed::counted_heap

void* operator new(size_t bytes) { return allocate(bytes, 1); }
void* operator new[](size_t bytes) { return allocate(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t a) { return allocate(bytes, static_cast<size_t>(a)); }
void* operator new[](size_t bytes, std::align_val_t a) { return allocate(bytes, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept { release(p, 1); }
void operator delete[](void* p) noexcept { release(p, 1); }
void operator delete(void* p, size_t) noexcept { release(p, 1); }
void operator delete[](void* p, size_t) noexcept { release(p, 1); }
void operator delete(void* p, std::align_val_t a) noexcept { release(p, static_cast<size_t>(a)); }
void operator delete[](void* p, std::align_val_t a) noexcept { release(p, static_cast<size_t>(a)); }
void operator delete(void* p, size_t, std::align_val_t a) noexcept { release(p, static_cast<size_t>(a)); }
void operator delete[](void* p, size_t, std::align_val_t a) noexcept { release(p, static_cast<size_t>(a)); }
