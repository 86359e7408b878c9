// SPDX-License-Identifier: Apache-2.0
#include "heed/base/pages.h"

#include <sys/mman.h>

#include <new>

namespace heed {
namespace {

constexpr size_t kCacheLine = 64;  // bytes

std::align_val_t alignment_of(size_t bytes) { return std::align_val_t{bytes < kLargePage ? kCacheLine : kLargePage}; }

}  // namespace

void* allocate_block(size_t bytes) {
  void* const memory = ::operator new(bytes, alignment_of(bytes));
#ifdef MADV_HUGEPAGE
  // Whole pages alone: the last bytes share theirs with nobody, but would take 2 MiB for a few. Advice: where the
  // system does not follow it, nothing is lost.
  if (bytes >= kLargePage) ::madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return memory;
}

void free_block(void* memory, size_t bytes) noexcept { ::operator delete(memory, alignment_of(bytes)); }

}  // namespace heed
