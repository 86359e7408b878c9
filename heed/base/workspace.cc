#include "heed/base/workspace.h"

#include <new>

namespace heed {

void Workspace::Free::operator()(std::byte* p) const noexcept { ::operator delete (p, std::align_val_t{kAlignment}); }

void Workspace::reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  data_.reset();  // first, so that old and new are never held at once
  bytes_ = 0;
  data_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})));
  bytes_ = bytes;
}

}  // namespace heed
