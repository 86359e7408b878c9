// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/checkpoint.h"

namespace heed::detail {

Constants constants_of(std::span<const Var> inputs) {
  Constants constants;
  constants.reserve(inputs.size());
  for (const Var& input : inputs) constants.emplace_back(input.value());
  return constants;
}

// The gradient of a leaf of the inner tape starts from the outer gradient, or becomes it where there is none yet, so
// that terms are added in the same order as without the inner tape. So each outer value is one leaf.
void run_again(const Backward& backward, const std::function<Var(const Context&, std::span<const Var>)>& f,
               const Constants& inputs) {
  Tape tape;
  const Context context{backward.parallel(), backward.workspace(), &tape};
  Constants leaves = inputs;
  const auto first_of = [&](size_t i) {
    size_t first = 0;
    while (first < i && !backward.same(first, i)) ++first;
    return first;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!backward.wants(i)) continue;
    leaves[i] = first_of(i) < i ? leaves[first_of(i)] : tape.leaf(inputs[i].value(), backward.so_far(i));
  }
  const Var output = f(context, leaves);
  if (!output.tracked()) return;
  tape.backward(output, context, backward.of(0));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor gradient = tape.gradient(leaves[i]);
    if (first_of(i) == i && !backward.so_far(i) && gradient) backward.pass_on(i, gradient);
  }
}

}  // namespace heed::detail
