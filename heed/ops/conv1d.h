// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution along the tokens on the tape, with 'same' padding: x [B,T,I], w [O,K I], b [O] -> y [B,T,O], K odd. See
// kernels/conv1d.h.
#include <span>

#include "heed/autograd/tape.h"
#include "heed/base/export.h"

namespace heed::ops {

// b may be empty. Lengths [B] of the rows are borrowed until the backward pass is done; empty: all of T.
HEED_API Var conv1d(const Context&, const Var& x, const Var& w, const Var& b, std::span<const int64_t> lengths = {});

}  // namespace heed::ops
