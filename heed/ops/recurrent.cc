#include "heed/ops/recurrent.h"

#include <algorithm>

#include "heed/ops/recurrent_call.h"

namespace heed::ops {
namespace {

template <class T>
kernels::RecurrentGradients<T> gradients_of(const RecurrentCall& call, const Backward& backward) {
  kernels::RecurrentGradients<T> grad = call.gradients<T>(backward);
  grad.d_h = backward.of(0).template view<const T, 3>();
  grad.d_last_h = backward.of(1).template view<const T, 2>();
  if (call.last_c) grad.d_last_c = backward.of(2).template view<const T, 2>();
  return grad;
}

void go_back(const RecurrentCall& call, const Backward& backward) {
  if (call.x.dtype() == DType::f64) return call.backward(gradients_of<double>(call, backward), nullptr);
  call.backward(gradients_of<float>(call, backward), nullptr, backward.workspace(), backward.parallel());
}

}  // namespace

RecurrentResult recurrent(const Context& context, const RecurrentArguments& a) {
  check_recurrent("recurrent", a, 0);
  const RecurrentCall call(a, 0);
  if (a.x.dtype() == DType::f64) {
    call.forward(nullptr);
  } else {
    call.forward(nullptr, context.workspace, context.parallel);
  }
  RecurrentResult result{call.h, call.last_h, call.last_c};
  if (a.trace) result.trace = call.trace(context.workspace);
  const std::array<Var, 8> inputs{a.x, a.w_ih, a.w_hh, a.b_ih, a.b_hh, a.peepholes, a.h0, a.c0};
  const bool tracked = std::any_of(inputs.begin(), inputs.end(), [](const Var& x) { return x.tracked(); });
  if (!context.tape || !tracked) return result;
  const auto back = [call](const Backward& backward) { go_back(call, backward); };
  if (call.last_c) {
    const auto vars = context.tape->record<3>(inputs, {call.h, call.last_h, call.last_c}, back);
    result.h = vars[0], result.last_h = vars[1], result.last_c = vars[2];
  } else {
    const auto vars = context.tape->record<2>(inputs, {call.h, call.last_h}, back);
    result.h = vars[0], result.last_h = vars[1];
  }
  return result;
}

}  // namespace heed::ops
