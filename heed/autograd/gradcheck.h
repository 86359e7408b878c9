#pragma once
// Gradients against central differences, in double. The output, of any shape, is made a number by a fixed random
// combination of its elements, so that no gradient can hide behind a symmetry.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/parameter.h"
#include "heed/autograd/tape.h"
#include "heed/base/export.h"

namespace heed {

struct GradcheckResult {
  // The largest difference, over the largest gradient of the same tensor; infinite where something is not a number.
  // Differences see little of a tensor whose gradients are all nearly zero, as of a bias that a softmax takes away: it
  // is measured by a thousandth of the largest gradient of all.
  double error = 0;
  double largest = 0;   // gradient, of all
  std::string where{};  // the error is: "input 1[17]" or "layers.0.weight[3]"; without the element for a direction
};

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
