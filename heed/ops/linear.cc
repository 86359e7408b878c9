// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/linear.h"

#include "heed/kernels/linear.h"
#include "heed/kernels/product_int8.h"
#include "heed/kernels/reference/linear.h"
#include "heed/ops/check.h"
#include "heed/ops/dispatch.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

// What a linear layer reads, and what backward needs of the forward pass.
struct Call {
  Tensor x, w, b, z;  // z: before the activation, kept where backward needs it
  Activation activation;

  // Of the kernel or of its f64 twin.
  template <class Inputs, class T>
  Inputs inputs() const {
    return {x.view<const T, 2>(), w.view<const T, 2>(), b.view<const T, 1>()};
  }
  template <class Gradients, class T>
  Gradients gradients(const Backward& backward) const {
    return {.dy = backward.of(0).view<const T, 2>(),
            .z = z.view<const T, 2>(),
            .dx = backward.to(0).view<T, 2>(),
            .dw = backward.to(1).view<T, 2>(),
            .db = backward.to(2).view<T, 1>()};
  }
};

void forward_f32(const Call& call, const View<float, 2>& y, Parallel& parallel) {
  kernels::linear_forward(call.inputs<kernels::LinearInputs, float>(), {y, call.z.view<float, 2>()}, call.activation,
                          parallel);
}
void forward_f64(const Call& call, const View<double, 2>& y) {
  reference::linear_forward(call.inputs<reference::LinearInputs, double>(), {y, call.z.view<double, 2>()},
                            call.activation);
}

void backward_f32(const Call& call, const View<const float, 2>& dy, const Backward& backward) {
  backward.workspace().reserve(kernels::linear_backward_bytes(dy.shape(0), dy.shape(1), call.activation));
  kernels::linear_backward(call.inputs<kernels::LinearInputs, float>(),
                           call.gradients<kernels::LinearGradients, float>(backward), call.activation,
                           backward.workspace(), backward.parallel());
}
void backward_f64(const Call& call, const View<const double, 2>& /*dy*/, const Backward& backward) {
  reference::linear_backward(call.inputs<reference::LinearInputs, double>(),
                             call.gradients<reference::LinearGradients, double>(backward), call.activation);
}

constexpr Kernel kForward{forward_f32, forward_f64};
constexpr Kernel kBackward{backward_f32, backward_f64};

}  // namespace

Var linear(const Context& context, const Var& x, const Var& w, const Var& b, Activation activation) {
  check_rows("linear", "x", x);
  check_there("linear", "w", w);
  if (w.shape().rank() != 2 || w.shape(1) != x.shape(-1)) {
    fail("linear", "w has shape " + to_string(w.shape()) + ", expected [O, " + std::to_string(x.shape(-1)) + "]");
  }
  check_dtype("linear", "w", w, x.dtype());
  if (b) check_shape("linear", "b", b, {w.shape(0)});
  check_dtype("linear", "b", b, x.dtype());

  const Tensor y = Tensor::uninitialised(x.shape().with(-1, w.shape(0)), x.dtype());
  Call call{x.value(), w.value(), b.value(), {}, activation};
  if (context.tape && activation != Activation::none) call.z = Tensor::like(y);
  kForward(context, call, y);
  return record(context, {x, w, b}, y, [call](const Backward& backward) { kBackward(backward, call, backward.of(0)); });
}

Tensor linear(const Context& context, const Tensor& x, const kernels::Weight& w, const Tensor& b,
              Activation activation) {
  check_rows("linear", "x", x);
  check_dtype("linear", "x", x, DType::f32);
  if (w.inputs() != x.shape(-1)) {
    fail("linear", "w has shape " + to_string(w.shape()) + ", expected [O, " + std::to_string(x.shape(-1)) + "]");
  }
  if (b) check_shape("linear", "b", b, {w.outputs()});
  check_dtype("linear", "b", b, DType::f32);
  const Tensor y = Tensor::uninitialised(x.shape().with(-1, w.outputs()));
  if (w.dtype() == DType::i8) {
    const View<const float, 2> in = x.view<const float, 2>();
    const Workspace scratch = Workspace::cached(kernels::quantised_rows_bytes(in.shape(0), in.shape(1)));
    const kernels::QuantisedRows rows =
        kernels::quantise_rows(in, kernels::best_int8_form(), scratch.data(), context.parallel);
    kernels::linear_int8({rows, w, b.view<const float, 1>()}, y.view<float, 2>(), activation, context.parallel);
    return y;
  }
  kernels::linear_forward({x.view<const float, 2>(), w, b.view<const float, 1>()}, {.y = y.view<float, 2>()},
                          activation, context.parallel);
  return y;
}

}  // namespace heed::ops
