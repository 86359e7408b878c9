// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/softmax.h"

#include "heed/kernels/loss.h"
#include "heed/kernels/reference/loss.h"
#include "heed/kernels/reference/softmax.h"
#include "heed/kernels/softmax.h"
#include "heed/ops/check.h"
#include "heed/ops/dispatch.h"

namespace heed::ops {
namespace {

namespace reference = kernels::reference;

enum class Kind : uint8_t { softmax, log_softmax };

constexpr Kernel kSoftmaxForward{kernels::softmax_forward, reference::softmax_forward};
constexpr Kernel kSoftmaxBackward{kernels::softmax_backward, reference::softmax_backward};
constexpr Kernel kLogSoftmaxForward{kernels::log_softmax_forward, reference::log_softmax_forward};
constexpr Kernel kLogSoftmaxBackward{kernels::log_softmax_backward, reference::log_softmax_backward};
constexpr Kernel kCrossEntropyForward{kernels::cross_entropy_forward, reference::cross_entropy_forward};
constexpr Kernel kCrossEntropyBackward{kernels::cross_entropy_backward, reference::cross_entropy_backward};

Var run(const char* op, const Context& context, Kind kind, const Var& x) {
  check_rows(op, "x", x);
  const Tensor y = Tensor::like(x.value());
  const bool log = kind == Kind::log_softmax;
  (log ? kLogSoftmaxForward : kSoftmaxForward)(context, x, y);
  return record(context, {x}, y, [log, y](const Backward& backward) {
    (log ? kLogSoftmaxBackward : kSoftmaxBackward)(backward, y, backward.of(0), backward.to(0));
  });
}

// What cross-entropy reads, and what backward needs of the forward pass.
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
  if (!targets || targets.dtype() != DType::i32) fail("cross_entropy", "targets are not i32, expected token ids");
  const int64_t V = logits.shape(-1);
  if (V < 1 || targets.size() * V != logits.value().size()) {
    fail("cross_entropy", "targets have shape " + to_string(targets.shape()) + ", expected one for each of " +
                              to_string(logits.shape()) + " without its last dimension");
  }
  if (!(options.smoothing >= 0 && options.smoothing <= 1)) {
    fail("cross_entropy", "smoothing is " + std::to_string(options.smoothing) + ", expected 0 to 1");
  }
  for (int32_t id : targets.span<int32_t>()) {
    if (id != options.ignored && (id < 0 || id >= V)) {
      fail("cross_entropy", "a target is " + std::to_string(id) + ", expected 0 to " + std::to_string(V - 1));
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
  const kernels::CrossEntropySum total = with_float("cross_entropy", dtype, [&]<class T>(T) {
    const kernels::CrossEntropyOutputs<T> to{losses.view<T, 1>(), call.stats.view<T, 2>()};
    return kCrossEntropyForward(context, call.inputs<T>(), to);
  });
  const Var loss =
      record(context, {logits}, Tensor::full({}, total.mean(), dtype), [call, total](const Backward& backward) {
        const double scale = total.count ? backward.of(0).item() / static_cast<double>(total.count) : 0;
        with_float("cross_entropy", call.logits.dtype(), [&]<class T>(T) {
          kCrossEntropyBackward(backward, call.inputs<T>(), call.stats, scale, backward.to(0));
        });
      });
  return {loss, total.sum, total.count};
}

}  // namespace heed::ops
