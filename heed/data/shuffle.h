// SPDX-License-Identifier: Apache-2.0
#pragma once
// A random permutation of n numbers that is computed, not stored: by a Feistel network over the next power of four,
// whose values beyond n are sent through it again (cycle walking; Black and Rogaway, 2002).
#include <bit>
#include <cassert>
#include <cstdint>

#include "heed/base/rng.h"

namespace heed::data {

class Shuffle {
 public:
  // `which` tells apart the shuffles of one seed and epoch.
  Shuffle(int64_t size, uint64_t seed, int64_t epoch, uint32_t which)
      : size_(static_cast<uint64_t>(size)), seed_(seed), epoch_(static_cast<uint64_t>(epoch)), which_(which) {
    if (size > 1) half_ = (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2;
    assert(half_ < 32);
  }

  int64_t operator()(int64_t index) const {
    assert(index >= 0 && static_cast<uint64_t>(index) < size_);
    auto value = static_cast<uint64_t>(index);
    do value = network(value);
    while (value >= size_);
    return static_cast<int64_t>(value);
  }

 private:
  // Each round swaps the halves and adds random bits of the one to the other; it is invertible, so no two inputs
  // collide.
  uint64_t network(uint64_t value) const {
    constexpr uint32_t kRounds = 8;
    const uint32_t mask = (uint32_t{1} << half_) - 1;
    uint32_t left = static_cast<uint32_t>(value >> half_), right = static_cast<uint32_t>(value) & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t stream = epoch_ * kRounds + round;
      const Block4 counter = {right, which_, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
      const uint32_t random = philox(counter, seed_)[0];
      const uint32_t mixed = left ^ (random & mask);
      left = right;
      right = mixed;
    }
    return uint64_t{left} << half_ | right;
  }

  uint64_t size_, seed_, epoch_;
  uint32_t which_;
  int half_ = 0;
};

}  // namespace heed::data
