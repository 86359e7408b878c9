// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers from a counter (Philox 4x32-10, Salmon et al. 2011): the n-th draw of a stream is a pure function of
// (seed, stream, n), so that any part of it can be drawn again, in any order, on any thread.
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace heed {

using Block4 = std::array<uint32_t, 4>;

// Ten rounds of Philox over a 128-bit counter with a 64-bit key.
constexpr Block4 philox(Block4 counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

// A sequential reader of one stream. Its whole state is (seed, stream, position): save those to resume.
class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t next_u32() {
    const uint64_t block = position_ / 4;
    if (block != cached_) {
      values_ = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                        static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                       seed_);
      cached_ = block;
    }
    return values_[position_++ % 4];
  }
  uint64_t next_u64() {
    const uint64_t low = next_u32();
    return low | uint64_t{next_u32()} << 32;
  }
  // In [0, 1), 24 random bits.
  float uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  // In [0, n), without bias; n > 0.
  uint64_t below(uint64_t n) {
    assert(n > 0);
    const uint64_t limit = n * (UINT64_MAX / n);
    uint64_t draw = next_u64();
    while (draw >= limit) draw = next_u64();
    return draw % n;
  }
  // Box-Muller; two draws for each value, so that a position says everything.
  float normal() {
    const double u = (next_u32() + 1.0) * 0x1p-32;  // in (0, 1]
    const double angle = 2 * std::numbers::pi * next_u32() * 0x1p-32;
    return static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(angle));
  }

  uint64_t seed() const { return seed_; }
  uint64_t stream() const { return stream_; }
  uint64_t position() const { return position_; }
  void seek(uint64_t position) { position_ = position; }

 private:
  uint64_t seed_, stream_, position_ = 0;
  uint64_t cached_ = UINT64_MAX;  // the block that values_ holds; no position lies in this one
  Block4 values_{};
};

}  // namespace heed
