// SPDX-License-Identifier: Apache-2.0
#include "heed/base/workspace.h"

#include <new>

#include "heed/base/allocator.h"

namespace heed {

static_assert(kCachedAlignment >= Workspace::kAlignment);

void Workspace::Free::operator()(std::byte* p) const noexcept {
  if (cached > 0) return cached_free(p, cached);
  ::operator delete (p, std::align_val_t{kAlignment});
}

Workspace Workspace::cached(size_t bytes) {
  Workspace made;
  if (bytes == 0) return made;
  made.data_ = {static_cast<std::byte*>(cached_allocate(bytes)), Free{bytes}};
  made.bytes_ = bytes;
  return made;
}

void Workspace::reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  data_.reset();  // first, so that old and new are never held at once
  bytes_ = 0;
  data_ = {static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})), Free{0}};
  bytes_ = bytes;
}

}  // namespace heed
