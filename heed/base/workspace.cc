// SPDX-License-Identifier: Apache-2.0
#include "heed/base/workspace.h"

#include "heed/base/allocator.h"
#include "heed/base/pages.h"

namespace heed {

static_assert(kCachedAlignment >= Workspace::kAlignment);

void Workspace::Free::operator()(std::byte* p) const noexcept {
  if (from_cache) return cached_free(p, bytes);
  free_block(p, bytes);
}

Workspace Workspace::cached(size_t bytes) {
  Workspace made;
  if (bytes == 0) return made;
  made.data_ = {static_cast<std::byte*>(cached_allocate(bytes)), Free{bytes, true}};
  made.bytes_ = bytes;
  return made;
}

void Workspace::reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  data_.reset();  // first, so that old and new are never held at once
  bytes_ = 0;
  data_ = {static_cast<std::byte*>(allocate_block(bytes)), Free{bytes, false}};
  bytes_ = bytes;
}

}  // namespace heed
