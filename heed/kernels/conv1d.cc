// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/conv1d.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "heed/kernels/linear.h"
#include "heed/kernels/product.h"

namespace heed::kernels {

namespace {

struct Sizes {
  int64_t B, T, I, O, K;

  explicit Sizes(const Conv1dInputs<float>& in)
      : B(in.x.shape(0)), T(in.x.shape(1)), I(in.x.shape(2)), O(in.w.shape(0)), K(in.taps()) {}
  int64_t rows() const { return B * T; }
};

// body(t, k, s) for every tap k of every token t that reads a token s inside the row.
template <class Body>
void for_taps(const Sizes& n, int64_t length, const Body& body) {
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t k = 0; k < n.K; ++k) {
      const int64_t s = t + k - (n.K - 1) / 2;
      if (s >= 0 && s < length) body(t, k, s);
    }
  }
}

// im2col: u [B T,K I] holds the tokens that each token's taps read. The convolution is a product with it.
void unfold(const Conv1dInputs<float>& in, const Sizes& n, float* u, Parallel& parallel) {
  parallel.for_each(n.B, [&](int64_t b, int) {
    float* rows = u + b * n.T * n.K * n.I;
    std::fill_n(rows, n.T * n.K * n.I, 0.0f);
    for_taps(n, in.length(b), [&](int64_t t, int64_t k, int64_t s) {
      std::memcpy(rows + (t * n.K + k) * n.I, in.x.at(b, s), static_cast<size_t>(n.I) * sizeof(float));
    });
  });
}

// Its transpose: accumulates du into dx.
void fold(const Conv1dInputs<float>& in, const Sizes& n, const float* du, const View<float, 3>& dx,
          Parallel& parallel) {
  parallel.for_each(n.B, [&](int64_t b, int) {
    const float* rows = du + b * n.T * n.K * n.I;
    for_taps(n, in.length(b), [&](int64_t t, int64_t k, int64_t s) {
      const float* from = rows + (t * n.K + k) * n.I;
      float* to = dx.at(b, s);
      for (int64_t i = 0; i < n.I; ++i) to[i] += from[i];
    });
  });
}

size_t bytes(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

}  // namespace

size_t conv1d_forward_bytes(const Conv1dInputs<float>& in) {
  const Sizes n(in);
  return bytes(n.rows() * n.K * n.I);
}

void conv1d_forward(const Conv1dInputs<float>& in, const View<float, 3>& y, Workspace& workspace,
                    Parallel& parallel) noexcept {
  assert(workspace.bytes() >= conv1d_forward_bytes(in));
  const Sizes n(in);
  auto* u = reinterpret_cast<float*>(workspace.data());
  unfold(in, n, u, parallel);
  linear_forward({{u, {n.rows(), n.K * n.I}}, in.w, in.b}, {.y = {y.data(), {n.rows(), n.O}}}, Activation::none,
                 parallel);
  for (int64_t b = 0; b < n.B; ++b) std::fill_n(y.at(b, in.length(b)), (n.T - in.length(b)) * n.O, 0.0f);
}

// The scratch of linear_backward comes first in the workspace.
size_t conv1d_backward_bytes(const Conv1dInputs<float>& in) {
  const Sizes n(in);
  return linear_backward_bytes(n.rows(), n.O, Activation::none) + bytes(n.rows() * (2 * n.K * n.I + n.O));
}

void conv1d_backward(const Conv1dInputs<float>& in, const Conv1dGradients<float>& grad, Workspace& workspace,
                     Parallel& parallel) noexcept {
  assert(workspace.bytes() >= conv1d_backward_bytes(in));
  const Sizes n(in);
  float* u = reinterpret_cast<float*>(workspace.data() + linear_backward_bytes(n.rows(), n.O, Activation::none));
  float *du = u + n.rows() * n.K * n.I, *dy = du + n.rows() * n.K * n.I;
  for (int64_t b = 0; b < n.B; ++b) {
    const int64_t real = in.length(b) * n.O;
    float* row = dy + b * n.T * n.O;
    std::copy_n(grad.dy.at(b), real, row);  // memcpy may not be given an empty view's null pointer
    std::fill_n(row + real, n.T * n.O - real, 0.0f);
  }
  const View<const float, 2> d(dy, {n.rows(), n.O});
  if (grad.dw || grad.db) {
    unfold(in, n, u, parallel);
    linear_backward({{u, {n.rows(), n.K * n.I}}, in.w, {}}, {.dy = d, .dw = grad.dw, .db = grad.db}, Activation::none,
                    workspace, parallel);
  }
  if (!grad.dx) return;
  product(d, in.w, {du, {n.rows(), n.K * n.I}}, {}, parallel);
  fold(in, n, du, grad.dx, parallel);
}

}  // namespace heed::kernels
