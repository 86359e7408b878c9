#include "heed/ops/linear.h"

#include "heed/kernels/linear.h"
#include "heed/kernels/reference/linear.h"
#include "heed/ops/check.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

struct Call {
  Tensor x, w, b, z;  // z: before the activation, kept where backward needs it
  Activation activation;
};

kernels::LinearInputs inputs_of(const Call& call) {
  return {call.x.view<const float, 2>(), call.w.view<const float, 2>(), call.b.view<const float, 1>()};
}

reference::LinearInputs twin_inputs_of(const Call& call) {
  return {call.x.view<const double, 2>(), call.w.view<const double, 2>(), call.b.view<const double, 1>()};
}

void go_back(const Call& call, const Backward& backward) {
  if (call.x.dtype() == DType::f64) {
    reference::linear_backward(twin_inputs_of(call),
                               {.dy = backward.of(0).view<const double, 2>(),
                                .z = call.z.view<const double, 2>(),
                                .dx = backward.to(0).view<double, 2>(),
                                .dw = backward.to(1).view<double, 2>(),
                                .db = backward.to(2).view<double, 1>()},
                               call.activation);
    return;
  }
  const View<const float, 2> dy = backward.of(0).view<const float, 2>();
  backward.workspace().reserve(kernels::linear_backward_bytes(dy.shape(0), dy.shape(1), call.activation));
  kernels::linear_backward(inputs_of(call),
                           {.dy = dy,
                            .z = call.z.view<const float, 2>(),
                            .dx = backward.to(0).view<float, 2>(),
                            .dw = backward.to(1).view<float, 2>(),
                            .db = backward.to(2).view<float, 1>()},
                           call.activation, backward.workspace(), backward.parallel());
}

}  // namespace

Var linear(const Context& context, const Var& x, const Var& w, const Var& b, Activation activation) {
  check_rows("linear", "x", x);
  check_there("linear", "w", w);
  if (w.shape().rank() != 2 || w.shape(1) != x.shape(-1)) {
    refuse("linear", "w has shape " + to_string(w.shape()) + ", expected [O, " + std::to_string(x.shape(-1)) + "]");
  }
  check_dtype("linear", "w", w, x.dtype());
  if (b) check_shape("linear", "b", b, {w.shape(0)});
  check_dtype("linear", "b", b, x.dtype());

  const Tensor y = Tensor::uninitialised(x.shape().with(-1, w.shape(0)), x.dtype());
  Call call{x.value(), w.value(), b.value(), {}, activation};
  if (context.tape && activation != Activation::none) call.z = Tensor::like(y);
  if (x.dtype() == DType::f64) {
    reference::linear_forward(twin_inputs_of(call), {y.view<double, 2>(), call.z.view<double, 2>()}, activation);
  } else {
    kernels::linear_forward(inputs_of(call), {y.view<float, 2>(), call.z.view<float, 2>()}, activation,
                            context.parallel);
  }
  return record(context, {x, w, b}, y, [call](const Backward& backward) { go_back(call, backward); });
}

Tensor linear(const Context& context, const Tensor& x, const kernels::Weight& w, const Tensor& b,
              Activation activation) {
  check_rows("linear", "x", x);
  check_dtype("linear", "x", x, DType::f32);
  if (w.inputs() != x.shape(-1)) {
    refuse("linear", "w has shape " + to_string(w.shape()) + ", expected [O, " + std::to_string(x.shape(-1)) + "]");
  }
  if (b) check_shape("linear", "b", b, {w.outputs()});
  check_dtype("linear", "b", b, DType::f32);
  const Tensor y = Tensor::uninitialised(x.shape().with(-1, w.outputs()));
  kernels::linear_forward({x.view<const float, 2>(), w, b.view<const float, 1>()}, {.y = y.view<float, 2>()},
                          activation, context.parallel);
  return y;
}

}  // namespace heed::ops
