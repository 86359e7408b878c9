// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/conv1d.h"

#include "heed/kernels/conv1d.h"
#include "heed/kernels/reference/conv1d.h"
#include "heed/ops/check.h"
#include "heed/ops/dispatch.h"

namespace heed::ops {
namespace {

constexpr Kernel kForward{kernels::conv1d_forward, kernels::reference::conv1d_forward, kernels::conv1d_forward_bytes};
constexpr Kernel kBackward{kernels::conv1d_backward, kernels::reference::conv1d_backward,
                           kernels::conv1d_backward_bytes};

// What a convolution reads.
struct Call {
  Tensor x, w, b;
  std::span<const int64_t> lengths;

  template <class T>
  kernels::Conv1dInputs<T> inputs() const {
    return {x.view<const T, 3>(), w.view<const T, 2>(), b.view<const T, 1>(), lengths};
  }
};

template <class T>
kernels::Conv1dGradients<T> gradients_of(const Backward& backward) {
  return {.dy = backward.of(0).view<const T, 3>(),
          .dx = backward.to(0).view<T, 3>(),
          .dw = backward.to(1).view<T, 2>(),
          .db = backward.to(2).view<T, 1>()};
}

void check(const Var& x, const Var& w, const Var& b, std::span<const int64_t> lengths) {
  check_sequences("conv1d", "x", x, lengths);
  check_there("conv1d", "w", w);
  const int64_t I = x.shape(2);
  if (w.shape().rank() != 2 || I == 0 || w.shape(1) % I != 0 || w.shape(1) / I % 2 != 1) {
    fail("conv1d", "w has shape " + to_string(w.shape()) + ", expected [O, K * " + std::to_string(I) + "], K odd");
  }
  check_dtype("conv1d", "w", w, x.dtype());
  if (b) check_shape("conv1d", "b", b, {w.shape(0)});
  check_dtype("conv1d", "b", b, x.dtype());
}

}  // namespace

Var conv1d(const Context& context, const Var& x, const Var& w, const Var& b, std::span<const int64_t> lengths) {
  check(x, w, b, lengths);
  const Call call{x.value(), w.value(), b.value(), lengths};
  const Tensor y = Tensor::uninitialised(x.shape().with(-1, w.shape(0)), x.dtype());
  with_float("conv1d", x.dtype(), [&]<class T>(T) { kForward(context, call.inputs<T>(), y); });
  return record(context, {x, w, b}, y, [call](const Backward& backward) {
    with_float("conv1d", call.x.dtype(),
               [&]<class T>(T) { kBackward(backward, call.inputs<T>(), gradients_of<T>(backward)); });
  });
}

}  // namespace heed::ops
