// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/heads.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed::analysis {
namespace {

// Asks for the gradient by every gate. A layer that runs twice in a pass has both in one.
class GateGradients final : public nn::ObserverBeside {
 public:
  using ObserverBeside::ObserverBeside;

  struct Layer {
    std::string path;
    Tensor gradient;  // [Hq]
  };

  Tensor head_gate_gradient(const std::string& path, int64_t heads, DType dtype) override {
    const auto known = std::find_if(layers_.begin(), layers_.end(), [&](const Layer& l) { return l.path == path; });
    if (known != layers_.end()) return known->gradient;
    return layers_.emplace_back(path, Tensor::zeros({heads}, dtype)).gradient;
  }
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  std::vector<Layer> layers_;
};

}  // namespace

std::vector<HeadValue> head_gradients(const nn::Pass& pass, const Question& question) {
  Tape tape;
  GateGradients gradients(pass.observer);
  nn::Pass own = pass;
  own.tape = &tape;
  own.frozen = true;
  own.observer = &gradients;
  const Var value = question.value(own);
  if (gradients.layers().empty()) throw Error("the model has no attention, expected one that has heads");
  tape.backward(value, own);
  std::vector<HeadValue> all;
  for (const GateGradients::Layer& layer : gradients.layers()) {
    const std::vector<double> by_head = layer.gradient.to_doubles();
    for (size_t head = 0; head < by_head.size(); ++head) {
      all.push_back({layer.path, static_cast<int64_t>(head), by_head[head]});
    }
  }
  return all;
}

double effect_of(const nn::Pass& pass, const Question& question, const std::vector<HeadGate>& list) {
  Gates gates(list, pass.observer);
  nn::Pass own = pass;
  own.observer = &gates;
  return question.measure(own) - question.measure(pass);
}

std::vector<HeadValue> head_effects(const nn::Pass& pass, const Question& question) {
  std::vector<HeadValue> all = head_gradients(pass, question);
  for (HeadValue& one : all) one.value = effect_of(pass, question, {{one.layer, one.head, 0}});
  return all;
}

}  // namespace heed::analysis
