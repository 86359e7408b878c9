// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dropout of single elements: y = x / (1 - rate) where an element is kept, else 0; and with a residual added in the
// same pass, y = residual + dropout(x). The mask comes from a counter-based generator, so that backward draws the same
// again. Not here: dropout of attention weights (attention/dropout.h), which this shares its rounding of the rate with.
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/rng.h"
#include "heed/base/view.h"
#include "heed/kernels/attention/dropout.h"

namespace heed::kernels {

struct ElementDropout {
  float rate{0};  // in [0, 1)
  uint64_t seed{0};
  uint64_t stream{0};  // below 2^63; one for each call of a pass: equal streams drop equal elements

  constexpr bool on() const { return rate > 0; }
  uint32_t threshold() const { return Dropout{rate, seed}.threshold(); }
  float keep_scale() const { return Dropout{rate, seed}.keep_scale(); }

  // A Philox block is eight draws of 16 bits. 16 consecutive blocks give the draws of 128 elements: element 16 j + l
  // has draw j of block l, so that vectors of up to 16 lanes hold consecutive elements.
  static constexpr int64_t kBlocks = 16, kDraws = 8, kGroup = kBlocks * kDraws;
  // The counter of a block. The highest bit keeps clear of what attention draws from the same seed.
  constexpr Block4 counter(int64_t block) const {
    return {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(stream),
            static_cast<uint32_t>(stream >> 32) | 0x80000000u};
  }
  // The definition; kernels draw many at a time.
  bool keeps(int64_t index) const {
    if (!on()) return true;
    const int64_t block = index / kGroup * kBlocks + index % kBlocks, draw = index % kGroup / kBlocks;
    const uint32_t word = philox(counter(block), seed)[static_cast<size_t>(draw / 2)];
    return (draw % 2 == 0 ? word & 0xFFFFu : word >> 16) >= threshold();
  }
};

// All [n], contiguous; an element is drawn by its index. residual may be empty; y may be x or residual.
HEED_API void dropout_forward(const ElementDropout&, View<const float, 1> x, View<const float, 1> residual,
                              View<float, 1> y, Parallel&) noexcept;
// dx += dy / (1 - rate) where kept. The gradient of residual is dy: add_backward in elementwise.h.
HEED_API void dropout_backward(const ElementDropout&, View<const float, 1> dy, View<float, 1> dx, Parallel&) noexcept;

}  // namespace heed::kernels
