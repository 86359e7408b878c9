// SPDX-License-Identifier: Apache-2.0
#pragma once
// One vector per sequence: x [B,T,width] -> [B,width]. Zero where a row has no tokens.
// Lengths are borrowed until the backward pass is done; empty: all of T.
#include <span>

#include "heed/base/export.h"
#include "heed/nn/pass.h"

namespace heed::nn {

// The mean of each row's tokens.
HEED_API Var mean_pool(Pass&, const Var& x, std::span<const int64_t> lengths);
// The last token of each row.
HEED_API Var last_pool(Pass&, const Var& x, std::span<const int64_t> lengths);

}  // namespace heed::nn
