// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dropout of attention weights from a counter-based generator: whether a pair (query, key) of a head is kept is a pure
// function of the seed and the pair's indices, so backward draws the same mask again, in any order and on any thread.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "heed/base/rng.h"

namespace heed::kernels {

struct Dropout {
  float rate{0};  // the probability that a weight becomes zero, in [0, 1); the others are divided by 1 - rate
  uint64_t seed{0};

  constexpr bool on() const { return rate > 0; }
  // A pair draws 16 random bits and is dropped if they are below this: the rate is rounded to a multiple of 2^-16.
  uint32_t threshold() const {
    return std::clamp<uint32_t>(static_cast<uint32_t>(std::lround(rate * 65536)), 1, 65535);
  }
  float keep_scale() const { return on() ? 65536.0f / static_cast<float>(65536 - threshold()) : 1.0f; }

  // One Philox block gives the draws of eight consecutive keys of a query. head: b * Hq + h.
  static constexpr int64_t kKeysADraw = 8;
  static constexpr Block4 counter(int64_t head, int64_t t, int64_t s) {
    return {static_cast<uint32_t>(s / kKeysADraw), static_cast<uint32_t>(t), static_cast<uint32_t>(head),
            static_cast<uint32_t>(head >> 32)};
  }
  // The definition; kernels draw for whole vectors of queries at a time.
  bool keeps(int64_t head, int64_t t, int64_t s) const {
    if (!on()) return true;
    const uint32_t word = philox(counter(head, t, s), seed)[static_cast<size_t>(s % kKeysADraw / 2)];
    return (s % 2 == 0 ? word & 0xFFFFu : word >> 16) >= threshold();
  }
};

}  // namespace heed::kernels
