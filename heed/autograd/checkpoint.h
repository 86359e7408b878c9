// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradient checkpointing: checkpoint(context, f, inputs) is f(context, inputs), trading memory for time. No activation
// of f is kept: the backward pass runs f once more, with a tape of its own, and backward through that. The results and
// gradients are the same bits as without.
//
//   Var y = checkpoint(context, [&](const Context& c, std::span<const Var> in) { return block(c, in[0]); },
//                      std::array{x});
//
// - Everything on the tape that f depends on comes through `inputs`. A tracked Var that f captured instead counts as a
//   constant at first, and is an Error when f runs again: it belongs to another tape.
// - Parameters may also come through leaves that f makes on the tape of the context that it is given, with gradients
//   of their own, as layers do: those accumulate. f is run without a tape first: then they are constants.
// - f computes the same both times: dropout from the same seed and stream, not from one that has moved on.
#include <functional>
#include <span>
#include <utility>

#include "heed/autograd/tape.h"
#include "heed/base/export.h"

namespace heed {

namespace detail {

using Constants = CachedVector<Var>;
HEED_API Constants constants_of(std::span<const Var> inputs);
HEED_API void run_again(const Backward&, const std::function<Var(const Context&, std::span<const Var>)>& f,
                        const Constants& inputs);

}  // namespace detail

// F: Var(const Context&, std::span<const Var>), held by value until the backward pass.
template <class F>
Var checkpoint(const Context& context, F f, std::span<const Var> inputs) {
  detail::Constants constants = detail::constants_of(inputs);
  const Tensor output = f(Context{context.parallel, context.workspace}, constants).value();
  if (!context.tape) return output;
  // Recorded even if no input is tracked: f may have leaves of its own.
  return context.tape->record(inputs, output,
                              [f = std::move(f), constants = std::move(constants)](const Backward& backward) {
                                detail::run_again(backward, std::cref(f), constants);
                              });
}

}  // namespace heed
