// SPDX-License-Identifier: Apache-2.0
#pragma once
// Token embeddings and rotary position embeddings (RoPE) on the tape.
#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/rope.h"

namespace heed::ops {

// table [V,E], ids [...] in i32 -> factor * rows [...,E].
HEED_API Var embedding(const Context&, const Var& table, const Tensor& ids, double factor = 1);

// Cosines and sines for P positions from the first on, [P, width/2] each; the first `width` numbers of a head are
// rotated.
struct HEED_API RotaryTables {
  Tensor cos{}, sin{};
  static RotaryTables make(int64_t positions, int64_t width, double base = 10000, DType = DType::f32,
                           int64_t first = 0);
};

// How x divides into heads, where it begins, and how numbers are paired.
struct RotaryOptions {
  int64_t heads{1};
  int64_t offset{0};  // token t is at position t + offset
  kernels::RopePairs pairs{kernels::RopePairs::halves};
};

// x [B,T,H D], rotated by the positions of its tokens.
HEED_API Var rotary(const Context&, const Var& x, const RotaryTables&, const RotaryOptions&);

}  // namespace heed::ops
