#include "heed/ops/norm.h"

#include "heed/kernels/norm.h"
#include "heed/kernels/reference/norm.h"
#include "heed/ops/check.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

enum class Kind { layer, rms };

struct Call {
  Kind kind;
  Tensor x, weight, bias, mean, rstd;
  double eps;

  template <class T>
  kernels::NormInputs<T> inputs() const {
    return {x.view<const T, 2>(), weight.view<const T, 1>(), bias.view<const T, 1>(), eps};
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

void go_back(const Call& call, const Backward& backward) {
  if (call.x.dtype() == DType::f64) {
    const auto back = call.kind == Kind::layer ? reference::layer_norm_backward : reference::rms_norm_backward;
    return back(call.inputs<double>(), call.gradients<double>(backward));
  }
  const auto x = call.x.view<const float, 2>();
  backward.workspace().reserve(kernels::norm_backward_bytes(x.shape(0), x.shape(1)));
  const auto back = call.kind == Kind::layer ? kernels::layer_norm_backward : kernels::rms_norm_backward;
  back(call.inputs<float>(), call.gradients<float>(backward), backward.workspace(), backward.parallel());
}

Var normalise(const char* op, const Context& context, Kind kind, const Var& x, const Var& weight, const Var& bias,
              double eps) {
  check_rows(op, "x", x);
  check_row_vector(op, "weight", weight, x);
  check_row_vector(op, "bias", bias, x);
  if (!(eps >= 0)) refuse(op, "eps is " + std::to_string(eps) + ", expected 0 or more");
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < x.shape().rank(); ++i) rows *= x.shape(static_cast<int>(i));
  const Tensor y = Tensor::like(x.value());
  Call call{kind, x.value(), weight.value(), bias.value(), {}, Tensor::uninitialised({rows}, x.dtype()), eps};
  if (kind == Kind::layer) call.mean = Tensor::uninitialised({rows}, x.dtype());
  if (x.dtype() == DType::f64) {
    const auto run = kind == Kind::layer ? reference::layer_norm_forward : reference::rms_norm_forward;
    run(call.inputs<double>(), {y.view<double, 2>(), call.mean.view<double, 1>(), call.rstd.view<double, 1>()});
  } else {
    const auto run = kind == Kind::layer ? kernels::layer_norm_forward : kernels::rms_norm_forward;
    run(call.inputs<float>(), {y.view<float, 2>(), call.mean.view<float, 1>(), call.rstd.view<float, 1>()},
        context.parallel);
  }
  return record(context, {x, weight, bias}, y, [call](const Backward& backward) { go_back(call, backward); });
}

}  // namespace

Var layer_norm(const Context& context, const Var& x, const Var& weight, const Var& bias, double eps) {
  return normalise("layer_norm", context, Kind::layer, x, weight, bias, eps);
}

Var rms_norm(const Context& context, const Var& x, const Var& weight, double eps) {
  return normalise("rms_norm", context, Kind::rms, x, weight, {}, eps);
}

}  // namespace heed::ops
