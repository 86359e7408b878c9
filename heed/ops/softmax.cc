#include "heed/ops/softmax.h"

#include "heed/kernels/loss.h"
#include "heed/kernels/reference/loss.h"
#include "heed/kernels/reference/softmax.h"
#include "heed/kernels/softmax.h"
#include "heed/ops/check.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

enum class Kind { softmax, log_softmax };

Var run(const char* op, const Context& context, Kind kind, const Var& x) {
  check_rows(op, "x", x);
  const Tensor y = Tensor::like(x.value());
  const bool log = kind == Kind::log_softmax;
  if (x.dtype() == DType::f64) {
    (log ? reference::log_softmax_forward : reference::softmax_forward)(x.value().view<const double, 2>(),
                                                                        y.view<double, 2>());
  } else {
    (log ? kernels::log_softmax_forward : kernels::softmax_forward)(x.value().view<const float, 2>(),
                                                                    y.view<float, 2>(), context.parallel);
  }
  return record(context, {x}, y, [log, y](const Backward& backward) {
    const Tensor &dy = backward.of(0), dx = backward.to(0);
    if (dy.dtype() == DType::f64) {
      (log ? reference::log_softmax_backward : reference::softmax_backward)(
          y.view<const double, 2>(), dy.view<const double, 2>(), dx.view<double, 2>());
    } else {
      (log ? kernels::log_softmax_backward : kernels::softmax_backward)(
          y.view<const float, 2>(), dy.view<const float, 2>(), dx.view<float, 2>(), backward.parallel());
    }
  });
}

struct LossCall {
  Tensor logits, targets, stats;
  CrossEntropyOptions options;

  template <class T>
  kernels::CrossEntropyInputs<T> inputs() const {
    return {logits.view<const T, 2>(), targets.view<const int32_t, 1>(), options.smoothing, options.ignored};
  }
};

void check_targets(const Var& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  check_rows("cross_entropy", "logits", logits);
  if (!targets || targets.dtype() != DType::i32) refuse("cross_entropy", "targets are not i32, expected token ids");
  const int64_t V = logits.shape(-1);
  if (V < 1 || targets.size() * V != logits.value().size()) {
    refuse("cross_entropy", "targets have shape " + to_string(targets.shape()) + ", expected one for each of " +
                                to_string(logits.shape()) + " without its last dimension");
  }
  if (!(options.smoothing >= 0 && options.smoothing <= 1)) {
    refuse("cross_entropy", "smoothing is " + std::to_string(options.smoothing) + ", expected 0 to 1");
  }
  for (int32_t id : targets.span<int32_t>()) {
    if (id != options.ignored && (id < 0 || id >= V)) {
      refuse("cross_entropy", "a target is " + std::to_string(id) + ", expected 0 to " + std::to_string(V - 1));
    }
  }
}

}  // namespace

Var softmax(const Context& context, const Var& x) { return run("softmax", context, Kind::softmax, x); }
Var log_softmax(const Context& context, const Var& x) { return run("log_softmax", context, Kind::log_softmax, x); }

CrossEntropyResult cross_entropy(const Context& context, const Var& logits, const Tensor& targets,
                                 const CrossEntropyOptions& options) {
  check_targets(logits, targets, options);
  const DType dtype = logits.dtype();
  const int64_t N = targets.size();
  const Tensor losses = Tensor::uninitialised({N}, dtype);
  const LossCall call{logits.value(), targets, Tensor::uninitialised({N, 2}, dtype), options};
  const kernels::CrossEntropySum total =
      dtype == DType::f64
          ? reference::cross_entropy_forward(call.inputs<double>(),
                                             {losses.view<double, 1>(), call.stats.view<double, 2>()})
          : kernels::cross_entropy_forward(call.inputs<float>(), {losses.view<float, 1>(), call.stats.view<float, 2>()},
                                           context.parallel);
  const Var loss =
      record(context, {logits}, Tensor::full({}, total.mean(), dtype), [call, total](const Backward& backward) {
        const double scale = total.count ? backward.of(0).item() / static_cast<double>(total.count) : 0;
        const Tensor to = backward.to(0);
        if (to.dtype() == DType::f64) {
          reference::cross_entropy_backward(call.inputs<double>(), call.stats.view<const double, 2>(), scale,
                                            to.view<double, 2>());
        } else {
          kernels::cross_entropy_backward(call.inputs<float>(), call.stats.view<const float, 2>(), scale,
                                          to.view<float, 2>(), backward.parallel());
        }
      });
  return {loss, total.sum, total.count};
}

}  // namespace heed::ops
