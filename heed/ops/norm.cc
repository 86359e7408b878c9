// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/norm.h"

#include "heed/kernels/norm.h"
#include "heed/kernels/reference/norm.h"
#include "heed/ops/check.h"
#include "heed/ops/dispatch.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

enum class Kind : uint8_t { layer, rms };

size_t backward_bytes(const kernels::NormInputs<float>& in) {
  return kernels::norm_backward_bytes(in.x.shape(0), in.x.shape(1));
}

constexpr Kernel kLayerForward{kernels::layer_norm_forward, reference::layer_norm_forward};
constexpr Kernel kLayerBackward{kernels::layer_norm_backward, reference::layer_norm_backward, backward_bytes};
constexpr Kernel kRmsForward{kernels::rms_norm_forward, reference::rms_norm_forward};
constexpr Kernel kRmsBackward{kernels::rms_norm_backward, reference::rms_norm_backward, backward_bytes};

// What a normalisation reads, and what backward needs of the forward pass.
struct Call {
  Kind kind;
  Tensor x, weight, bias, mean, rstd;
  double eps;

  template <class T>
  kernels::NormInputs<T> inputs() const {
    return {x.view<const T, 2>(), weight.view<const T, 1>(), bias.view<const T, 1>(), eps};
  }
  template <class T>
  kernels::NormOutputs<T> outputs(const Tensor& y) const {
    return {y.view<T, 2>(), mean.view<T, 1>(), rstd.view<T, 1>()};
  }
  template <class T>
  kernels::NormGradients<T> gradients(const Backward& backward) const {
    return {.mean = mean.view<const T, 1>(),
            .rstd = rstd.view<const T, 1>(),
            .dy = backward.of(0).view<const T, 2>(),
            .dx = backward.to(0).view<T, 2>(),
            .dweight = backward.to(1).view<T, 1>(),
            .dbias = backward.to(2).view<T, 1>()};
  }
};

Var normalise(const char* op, const Context& context, Kind kind, const Var& x, const Var& weight, const Var& bias,
              double eps) {
  check_rows(op, "x", x);
  check_row_vector(op, "weight", weight, x);
  check_row_vector(op, "bias", bias, x);
  if (!(eps >= 0)) fail(op, "eps is " + std::to_string(eps) + ", expected 0 or more");
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < x.shape().rank(); ++i) rows *= x.shape(static_cast<int>(i));
  const Tensor y = Tensor::like(x.value());
  Call call{kind, x.value(), weight.value(), bias.value(), {}, Tensor::uninitialised({rows}, x.dtype()), eps};
  if (kind == Kind::layer) call.mean = Tensor::uninitialised({rows}, x.dtype());
  const auto& forward = kind == Kind::layer ? kLayerForward : kRmsForward;
  with_float(op, x.dtype(), [&]<class T>(T) { forward(context, call.inputs<T>(), call.outputs<T>(y)); });
  return record(context, {x, weight, bias}, y, [call](const Backward& backward) {
    const auto& kernel = call.kind == Kind::layer ? kLayerBackward : kRmsBackward;
    with_float("norm", call.x.dtype(),
               [&]<class T>(T) { kernel(backward, call.inputs<T>(), call.gradients<T>(backward)); });
  });
}

}  // namespace

Var layer_norm(const Context& context, const Var& x, const Var& weight, const Var& bias, double eps) {
  return normalise("layer_norm", context, Kind::layer, x, weight, bias, eps);
}

Var rms_norm(const Context& context, const Var& x, const Var& weight, double eps) {
  return normalise("rms_norm", context, Kind::rms, x, weight, {}, eps);
}

}  // namespace heed::ops
