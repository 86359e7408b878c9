#pragma once
// Tokens to vectors on the tape, and rotary positions.
#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/rope.h"

namespace heed::ops {

// table [V,E], ids [...] in i32 -> factor * rows [...,E].
HEED_API Var embedding(const Context&, const Var& table, const Tensor& ids, double factor = 1);

// Cosines and sines for positions 0 to P - 1 and heads of which the first `width` numbers are turned: two [P, width/2].
struct HEED_API RotaryTables {
  Tensor cos{}, sin{};
  static RotaryTables make(int64_t positions, int64_t width, double base = 10000, DType = DType::f32);
};

struct RotaryOptions {
  int64_t heads{1};
  int64_t offset{0};  // token t stands at t + offset
  kernels::RopePairs pairs{kernels::RopePairs::halves};
};

// x [B,T,H D].
HEED_API Var rotary(const Context&, const Var& x, const RotaryTables&, const RotaryOptions&);

}  // namespace heed::ops
