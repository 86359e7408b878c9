// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rotary position embedding (RoPE): pair i of a head's first R elements is rotated by the angle p base^(-2i/R), p the
// position, R = 2 * (width of the tables) <= D:
//   y_a = x_a cos - x_b sin
//   y_b = x_a sin + x_b cos
// and the other D - R elements are copied. Cosines and sines come from tables, made once (rope_tables) or given,
// as the ONNX operator RotaryEmbedding has them. Results are the same bits for any number of threads.
#include <cstdint>

#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"

namespace heed::kernels {

// The elements of pair i: i and i + R/2, or 2i and 2i + 1.
enum class RopePairs : uint8_t { halves, interleaved };

template <class T>
struct RopeTables {
  View<const T, 2> cos{}, sin{};       // [P,R/2]: row p for position p
  View<const int32_t, 2> positions{};  // [B,T], each in [0, P); empty: token t is at t + offset
  int64_t offset{0};
  RopePairs pairs{RopePairs::halves};
};

// Fills cos and sin [P,R/2] for the P positions from the first on.
HEED_API void rope_tables(double base, View<float, 2> cos, View<float, 2> sin, int64_t first = 0) noexcept;

// x, y [B,H,T,D], any strides with a contiguous last dimension; y may be x.
HEED_API void rope_forward(const RopeTables<float>&, View<const float, 4> x, View<float, 4> y, Parallel&) noexcept;
// dx += dy, rotated by the opposite angle.
HEED_API void rope_backward(const RopeTables<float>&, View<const float, 4> dy, View<float, 4> dx, Parallel&) noexcept;

}  // namespace heed::kernels
