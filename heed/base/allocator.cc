// SPDX-License-Identifier: Apache-2.0
#include "heed/base/allocator.h"

#include <array>
#include <bit>
#include <new>

#include "heed/base/pages.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) (static_cast<void>(memory), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) (static_cast<void>(memory), static_cast<void>(bytes))
#endif

namespace heed {
namespace {

constexpr size_t kSmallest = 64;  // bytes
constexpr size_t kLargest = size_t{1} << 62;
constexpr size_t kClasses = size_t{4} * 57;

// Sizes are rounded up to four steps an octave, so that at most a quarter is wasted and sizes that differ a little
// share blocks.
struct SizeClass {
  size_t index, bytes;

  explicit SizeClass(size_t wanted) {
    const size_t size = wanted < kSmallest ? kSmallest : wanted;
    const size_t octave = static_cast<size_t>(std::bit_width(size - 1)) - 1;  // 2^octave < size <= 2^(octave + 1)
    const size_t step = (size_t{1} << octave) / 4;
    const size_t steps = (size - (size_t{1} << octave) + step - 1) / step;
    bytes = (size_t{1} << octave) + steps * step;
    index = (octave - 5) * 4 + steps - 1;
  }
  // Of the class of this index.
  static size_t bytes_of(size_t index) {
    const size_t octave = index / 4 + 5, steps = index % 4 + 1;
    return (size_t{1} << octave) + steps * ((size_t{1} << octave) / 4);
  }
};

struct FreeBlock {
  FreeBlock* next;
};

struct Cache {
  std::array<FreeBlock*, kClasses> free{};
  AllocatorStats stats;

  ~Cache() { release(); }
  void release() noexcept {
    for (size_t i = 0; i < kClasses; ++i) {
      FreeBlock*& list = free[i];
      const size_t bytes = SizeClass::bytes_of(i);
      while (list) {
        FreeBlock* block = list;
        list = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block, bytes);
        free_block(block, bytes);
      }
    }
    stats.kept_bytes = 0;
  }
};

// A tensor may outlive its thread's cache, as static ones do: then blocks go straight back.
thread_local bool cache_gone = false;
struct CacheHolder {
  Cache cache;
  ~CacheHolder() { cache_gone = true; }
};

Cache* cache() {
  if (cache_gone) return nullptr;
  thread_local CacheHolder holder;
  return &holder.cache;
}

// AddressSanitizer does not know that a block is kept, or larger than it was asked to be: it is told.
void* handed_out(void* block, size_t bytes, size_t of) {
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(block) + bytes, of - bytes);
  return block;
}

}  // namespace

void* cached_allocate(size_t bytes) {
  if (bytes > kLargest) throw std::bad_alloc();
  const SizeClass size(bytes);
  Cache* kept = cache();
  if (kept && kept->free[size.index]) {
    FreeBlock* block = kept->free[size.index];
    kept->free[size.index] = block->next;
    kept->stats.kept_bytes -= static_cast<int64_t>(size.bytes);
    return handed_out(block, bytes, size.bytes);
  }
  void* memory = allocate_block(size.bytes);
  if (kept) ++kept->stats.fresh;
  return handed_out(memory, bytes, size.bytes);
}

void cached_free(void* memory, size_t bytes) noexcept {
  if (!memory) return;
  Cache* kept = cache();
  const SizeClass size(bytes);
  ASAN_UNPOISON_MEMORY_REGION(memory, size.bytes);
  if (!kept) return free_block(memory, size.bytes);
  kept->free[size.index] = new (memory) FreeBlock{kept->free[size.index]};
  kept->stats.kept_bytes += static_cast<int64_t>(size.bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(memory) + sizeof(FreeBlock), size.bytes - sizeof(FreeBlock));
}

AllocatorStats allocator_stats() { return cache() ? cache()->stats : AllocatorStats{}; }

void release_cached_memory() noexcept {
  if (cache()) cache()->release();
}

}  // namespace heed
