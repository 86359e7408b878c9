// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients against central differences, in f64. The output, of any shape, is reduced to a scalar by a fixed random
// linear combination of its elements, so that no gradient can hide behind a symmetry.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/parameter.h"
#include "heed/autograd/tape.h"
#include "heed/base/export.h"

namespace heed {

// The largest error that was found, and where.
struct GradcheckResult {
  // The largest difference, relative to the largest gradient of the same tensor; infinite where something is NaN.
  // Finite differences are noise for a tensor whose gradients are all nearly zero, such as a bias that a softmax
  // cancels: its error is relative to a thousandth of the largest gradient of all, at least.
  double error = 0;
  double largest = 0;  // gradient of all tensors
  std::string
      where{};  // the largest error is: "input 1[17]", "layers.0.weight[3]"; for a direction, without an element
};

// How finely, and of how many elements, gradients are checked.
struct GradcheckOptions {
  double step = 1e-5;
  uint64_t seed = 1;
  int64_t samples = 0;  // elements of each tensor that are tried, at random; 0: all of them
  // For large tensors, instead of elements: each is moved as a whole, that many times, along its gradient and a random
  // direction together. The error is then that of the directional derivatives; 0: elements.
  int64_t directions = 0;
};

// f is called many times, and must give the same result for the same inputs. Inputs are in f64. Throws Error.
HEED_API GradcheckResult gradcheck(const std::function<Var(Context&, std::span<const Var>)>& f,
                                   const std::vector<Tensor>& inputs, const GradcheckOptions& = {});
// The same for the parameters of a store in f64: f uses them through the tape of the context it is given.
HEED_API GradcheckResult gradcheck(const std::function<Var(Context&)>& f, const ParameterStore& parameters,
                                   const GradcheckOptions& = {});

}  // namespace heed
