// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/optimizer.h"

#include <cassert>
#include <cmath>

namespace heed::kernels::reference {
namespace {

bool decays(const StepBuffers<double>& buffers, int64_t i) {
  for (const ElementRange& range : buffers.decayed) {
    if (i >= range.begin && i < range.end) return true;
  }
  return false;
}

}  // namespace

void sgd_step(const SgdOptions& options, const StepBuffers<double>& buffers, View<double, 1> velocity) {
  assert(velocity || options.momentum == 0 || buffers.values.shape(0) == 0);
  for (int64_t i = 0; i < buffers.values.shape(0); ++i) {
    double& value = buffers.values(i);
    double g = buffers.gradient_scale * buffers.gradients(i);
    if (decays(buffers, i)) g += options.weight_decay * value;
    if (options.momentum != 0) {
      velocity(i) = options.momentum * velocity(i) + g;
      g = options.nesterov ? g + options.momentum * velocity(i) : velocity(i);
    }
    value -= options.rate * g;
    if (buffers.clear_gradients) buffers.gradients(i) = 0;
  }
}

void adam_step(const AdamOptions& options, const StepBuffers<double>& buffers, const AdamMoments<double>& moments) {
  const auto step = static_cast<double>(moments.step);
  const double correction1 = 1 - std::pow(options.beta1, step), correction2 = 1 - std::pow(options.beta2, step);
  for (int64_t i = 0; i < buffers.values.shape(0); ++i) {
    double &value = buffers.values(i), &m = moments.m(i), &v = moments.v(i);
    double g = buffers.gradient_scale * buffers.gradients(i);
    const double decay = decays(buffers, i) ? options.weight_decay : 0;
    if (options.decoupled) {
      value *= 1 - options.rate * decay;
    } else {
      g += decay * value;
    }
    m = options.beta1 * m + (1 - options.beta1) * g;
    v = options.beta2 * v + (1 - options.beta2) * g * g;
    value -= options.rate / correction1 * m / (std::sqrt(v) / std::sqrt(correction2) + options.eps);
    if (buffers.clear_gradients) buffers.gradients(i) = 0;
  }
}

double gradient_norm(View<const double, 1> gradients) {
  double squares = 0;
  for (int64_t i = 0; i < gradients.shape(0); ++i) squares += gradients(i) * gradients(i);
  return std::sqrt(squares);
}

}  // namespace heed::kernels::reference
