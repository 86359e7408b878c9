// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/recurrent.h"

#include "heed/ops/recurrent_call.h"

namespace heed::ops {
namespace {

// The record's outputs by name.
struct Output {
  enum : uint8_t { h, last_h, last_c };
};

void run_backward(const RecurrentCall& call, const Backward& backward) {
  with_float("recurrent", call.x.dtype(), [&]<class T>(T) {
    kernels::RecurrentGradients<T> grad = call.gradients<T>(backward);
    grad.d_h = backward.of(Output::h).view<const T, 3>();
    grad.d_last_h = backward.of(Output::last_h).view<const T, 2>();
    if (call.last_c) grad.d_last_c = backward.of(Output::last_c).view<const T, 2>();
    call.backward<T>(backward, grad, nullptr);
  });
}

}  // namespace

RecurrentResult recurrent(const Context& context, const RecurrentArguments& a) {
  check_recurrent("recurrent", a, 0);
  const RecurrentCall call(a, 0);
  with_float("recurrent", a.x.dtype(), [&]<class T>(T) { call.forward<T>(context, nullptr); });
  RecurrentResult result{call.h, call.last_h, call.last_c};
  if (a.trace) result.trace = call.trace(context);
  const auto back = [call](const Backward& backward) { run_backward(call, backward); };
  const auto inputs = kRecurrentInputs.of(a);
  if (call.last_c) {
    const auto vars = record<3>(context, inputs, {call.h, call.last_h, call.last_c}, back);
    result.h = vars[Output::h], result.last_h = vars[Output::last_h], result.last_c = vars[Output::last_c];
  } else {
    const auto vars = record<2>(context, inputs, {call.h, call.last_h}, back);
    result.h = vars[Output::h], result.last_h = vars[Output::last_h];
  }
  return result;
}

}  // namespace heed::ops
