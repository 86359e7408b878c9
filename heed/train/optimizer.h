// SPDX-License-Identifier: Apache-2.0
#pragma once
// Optimizers: an object that moves the values of a parameter store by their gradients, with what it remembers between
// steps. The arithmetic is kernels/optimizer.h's.
//
//   train::AdamW optimizer(model->parameters(), {.weight_decay = 0.01});
//   optimizer.step({.rate = 1e-3, .step = 1}, parallel);   // uses the gradients up: they are zero afterwards
#include <cstdint>
#include <string>
#include <vector>

#include "heed/autograd/parameter.h"
#include "heed/base/describe.h"
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/kernels/optimizer.h"

namespace heed::train {

struct OptimizerStep {
  double rate{1e-3};
  double gradient_scale{1};  // every gradient counts times this, as clipping wants it
  int64_t step{1};           // counts from 1
};

class HEED_API Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string name() const = 0;  // a checkpoint names it
  virtual void step(const OptimizerStep&, Parallel&) = 0;

  // What a checkpoint has to keep, [n] as the values are.
  struct Buffer {
    std::string name;
    Tensor numbers;
  };
  virtual std::vector<Buffer> buffers() const = 0;
};

struct AdamWOptions {
  double beta1{0.9}, beta2{0.98};
  double eps{1e-9};
  double weight_decay{0.01};  // of matrices: not of biases, norms and gates
};

class HEED_API AdamW final : public Optimizer {
 public:
  // The parameters are borrowed. Throws Error where they have no gradients, or are not f32.
  explicit AdamW(const ParameterStore&, const AdamWOptions& = {});
  std::string name() const override { return "adamw"; }
  void step(const OptimizerStep&, Parallel&) override;
  std::vector<Buffer> buffers() const override { return {{"m", m_}, {"v", v_}}; }

 private:
  const ParameterStore& parameters_;
  AdamWOptions options_;
  std::vector<kernels::ElementRange> decayed_;
  Tensor m_, v_;
};

struct SgdOptions {
  double momentum{0};
  bool nesterov{false};
  double weight_decay{0};
};

class HEED_API Sgd final : public Optimizer {
 public:
  explicit Sgd(const ParameterStore&, const SgdOptions& = {});
  std::string name() const override { return "sgd"; }
  void step(const OptimizerStep&, Parallel&) override;
  std::vector<Buffer> buffers() const override;

 private:
  const ParameterStore& parameters_;
  SgdOptions options_;
  std::vector<kernels::ElementRange> decayed_;
  Tensor velocity_;  // none without momentum
};

}  // namespace heed::train
