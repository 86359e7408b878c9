// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of memory from the system. From 2 MiB on they begin at a large page, and the system is advised to use such
// pages: weights that are read from end to end at every step then cost 512 times fewer page faults and TLB entries.
// Not for users of the library: Workspace and cached_allocate (allocator.h) are made of them.
#include <cstddef>

namespace heed {

constexpr size_t kLargePage = size_t{1} << 21;  // bytes

// Aligned to a cache line at least. Throws std::bad_alloc.
void* allocate_block(size_t bytes);
// With the size that was asked for.
void free_block(void* memory, size_t bytes) noexcept;

}  // namespace heed
