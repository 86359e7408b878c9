// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest sizes that the options of a model may name. They are far beyond any model there is, and small enough that
// no product of two or three of them overflows, and that all layers can be named before their tensors are looked for:
// what a config.json says is not to be trusted before that.
#include <cstdint>

namespace heed::models {

inline constexpr int64_t kMaxLayers = 1000;
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;  // of states, heads, and of embeddings
inline constexpr int64_t kMaxInner = int64_t{1} << 24;  // of a feed-forward part
inline constexpr int64_t kMaxHeads = int64_t{1} << 16;
inline constexpr int64_t kMaxTaps = 1001;                      // of a convolution
inline constexpr int64_t kMaxTokens = (int64_t{1} << 31) - 1;  // of a vocabulary: ids are int32_t; classes, too
inline constexpr int64_t kMaxPositions = int64_t{1} << 24;     // of a row

}  // namespace heed::models
