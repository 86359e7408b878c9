// SPDX-License-Identifier: Apache-2.0
#include "heed/nn/pooling.h"

#include "heed/ops/attention.h"
#include "heed/ops/elementwise.h"

namespace heed::nn {
namespace {

// Attention with a query of zeros: all scores are equal, and so are the weights of visible tokens.
Var mean_of_visible(Pass& pass, const Var& x, std::span<const int64_t> lengths, kernels::Mask mask) {
  ops::AttentionArguments a{.q = Tensor::zeros({x.shape(0), 1, x.shape(2)}, x.dtype()), .k = x, .v = x};
  if (!lengths.empty()) mask.lengths = kernels::Lengths{lengths};
  a.options.mask = mask;
  return ops::reshape(pass, ops::attention(pass, a).out, {x.shape(0), x.shape(2)});
}

}  // namespace

Var mean_pool(Pass& pass, const Var& x, std::span<const int64_t> lengths) {
  return mean_of_visible(pass, x, lengths, {});
}

Var last_pool(Pass& pass, const Var& x, std::span<const int64_t> lengths) {
  return mean_of_visible(pass, x, lengths, kernels::Window::bottom_right(0, 0));
}

}  // namespace heed::nn
