// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementwise ops on the tape: sums, products, factors, activations, dropout; and concatenation, slices, reshapes.
#include <span>

#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/kernels/activation.h"
#include "heed/kernels/dropout.h"

namespace heed::ops {

HEED_API Var add(const Context&, const Var& a, const Var& b);       // of one shape
HEED_API Var multiply(const Context&, const Var& a, const Var& b);  // of one shape
// x [B,...] + row [...], broadcast over the leading dimensions: a bias [E] over [B,T,E], or a table of positions [T,E].
HEED_API Var add_row(const Context&, const Var& x, const Var& row);
HEED_API Var scale(const Context&, const Var& x, double factor);
HEED_API Var activation(const Context&, const Var& x, kernels::Activation);

// x / (1 - rate) where kept, else 0; the residual is added. A rate of 0 draws nothing.
HEED_API Var dropout(const Context&, const Var& x, const kernels::ElementDropout&);
HEED_API Var residual_dropout(const Context&, const Var& residual, const Var& x, const kernels::ElementDropout&);

// Along the last dimension; the others are equal.
HEED_API Var concat(const Context&, std::span<const Var> parts);
// Columns [begin, begin + count) of the last dimension, copied.
HEED_API Var columns(const Context&, const Var& x, int64_t begin, int64_t count);

HEED_API Var reshape(const Context&, const Var& x, const Shape&);
// Entries [begin, begin + count) of the first dimension.
HEED_API Var rows(const Context&, const Var& x, int64_t begin, int64_t count);
HEED_API Var sum(const Context&, const Var& x);  // of everything: a single number

}  // namespace heed::ops
