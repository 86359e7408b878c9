#include "heed/ops/conv1d.h"

#include "heed/kernels/conv1d.h"
#include "heed/kernels/reference/conv1d.h"
#include "heed/ops/check.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

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

void go_back(const Call& call, const Backward& backward) {
  if (call.x.dtype() == DType::f64) {
    return reference::conv1d_backward(call.inputs<double>(), gradients_of<double>(backward));
  }
  const auto in = call.inputs<float>();
  backward.workspace().reserve(kernels::conv1d_backward_bytes(in));
  kernels::conv1d_backward(in, gradients_of<float>(backward), backward.workspace(), backward.parallel());
}

void check(const Var& x, const Var& w, const Var& b, std::span<const int64_t> lengths) {
  check_sequences("conv1d", "x", x, lengths);
  check_there("conv1d", "w", w);
  const int64_t I = x.shape(2);
  if (w.shape().rank() != 2 || I == 0 || w.shape(1) % I != 0 || w.shape(1) / I % 2 != 1) {
    refuse("conv1d", "w has shape " + to_string(w.shape()) + ", expected [O, K * " + std::to_string(I) + "], K odd");
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
  if (x.dtype() == DType::f64) {
    reference::conv1d_forward(call.inputs<double>(), y.view<double, 3>());
  } else {
    const auto in = call.inputs<float>();
    context.workspace.reserve(kernels::conv1d_forward_bytes(in));
    kernels::conv1d_forward(in, y.view<float, 3>(), context.workspace, context.parallel);
  }
  return record(context, {x, w, b}, y, [call](const Backward& backward) { go_back(call, backward); });
}

}  // namespace heed::ops
