// SPDX-License-Identifier: Apache-2.0
#include "heed/train/optimizer.h"

#include "heed/base/error.h"

namespace heed::train {
namespace {

const ParameterStore& checked(const ParameterStore& parameters) {
  if (parameters.values().dtype() != DType::f32) {
    throw Error(std::string("optimizer: parameters in ") + name_of(parameters.values().dtype()) +
                " came, expected f32");
  }
  if (!parameters.gradients()) {
    throw Error("optimizer: the parameters have no gradients, expected a model that was made to be trained");
  }
  return parameters;  // NOLINT(bugprone-return-const-ref-from-parameter): a store outlives its optimizer
}

// Where weight decay applies.
std::vector<kernels::ElementRange> decayed_of(const ParameterStore& parameters) {
  std::vector<kernels::ElementRange> ranges;
  for (const auto& entry : parameters.entries()) {
    if (entry.decay) ranges.push_back({entry.offset, entry.offset + entry.value.size()});
  }
  return ranges;
}

kernels::StepBuffers<float> buffers_of(const ParameterStore& parameters,
                                       const std::vector<kernels::ElementRange>& decayed, double gradient_scale) {
  return {.values = parameters.values().view<float, 1>(),
          .gradients = parameters.gradients().view<float, 1>(),
          .decayed = decayed,
          .gradient_scale = gradient_scale,
          .clear_gradients = true};
}

}  // namespace

AdamW::AdamW(const ParameterStore& parameters, const AdamWOptions& options)
    : parameters_(checked(parameters)),
      options_(options),
      decayed_(decayed_of(parameters)),
      m_(Tensor::zeros_like(parameters.values())),
      v_(Tensor::zeros_like(parameters.values())) {}

void AdamW::step(const OptimizerStep& step, Parallel& parallel) {
  kernels::adam_step({.rate = step.rate,
                      .beta1 = options_.beta1,
                      .beta2 = options_.beta2,
                      .eps = options_.eps,
                      .weight_decay = options_.weight_decay},
                     buffers_of(parameters_, decayed_, step.gradient_scale),
                     {m_.view<float, 1>(), v_.view<float, 1>(), step.step}, parallel);
}

Sgd::Sgd(const ParameterStore& parameters, const SgdOptions& options)
    : parameters_(checked(parameters)), options_(options), decayed_(decayed_of(parameters)) {
  if (options.momentum != 0) velocity_ = Tensor::zeros_like(parameters.values());
}

void Sgd::step(const OptimizerStep& step, Parallel& parallel) {
  kernels::sgd_step({.rate = step.rate,
                     .momentum = options_.momentum,
                     .nesterov = options_.nesterov,
                     .weight_decay = options_.weight_decay},
                    buffers_of(parameters_, decayed_, step.gradient_scale), velocity_.view<float, 1>(), parallel);
}

std::vector<Optimizer::Buffer> Sgd::buffers() const {
  if (!velocity_) return {};
  return {{"velocity", velocity_}};
}

}  // namespace heed::train
