// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/placement.h"

#include <string>

#include "heed/base/error.h"

namespace heed::dist {

Placement::Placement(int64_t length, int ranks) : length_(length), ranks_(ranks) {
  if (length < 0) throw Error("placement: length is " + std::to_string(length) + ", expected 0 or more");
  if (ranks < 1) throw Error("placement: ranks is " + std::to_string(ranks) + ", expected 1 or more");
}

Rows Placement::chunk(int index) const {
  // As index * length / chunks, which a long sequence on many ranks could overflow.
  const int64_t each = length_ / chunks(), rest = length_ % chunks();
  const auto begin = [&](int64_t i) { return i * each + i * rest / chunks(); };
  return {begin(index), begin(index + 1)};
}

int64_t Placement::rows(int rank) const {
  const auto [early, late] = chunks_of(rank);
  return chunk(early).count() + chunk(late).count();
}

}  // namespace heed::dist
