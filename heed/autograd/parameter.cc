#include "heed/autograd/parameter.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed {

void ParameterStore::lay_out(const std::vector<std::pair<std::string, Parameter*>>& found, DType dtype) {
  with_float("parameters", dtype, [](auto) {});  // throws for what cannot be trained in
  constexpr int64_t kAlign = 16;                 // numbers: a cache line of f32
  int64_t total = 0;
  for (const auto& [name, parameter] : found) {
    if (find(name)) throw Error("parameters: the name '" + name + "' came twice, expected each once");
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (found[i].second == parameter) {
        throw Error("parameters: '" + name + "' is '" + entries_[i].name + "' again, expected each once");
      }
    }
    entries_.push_back({name, total, parameter->value, {}, parameter->decay});
    count_ += parameter->value.size();
    total += (parameter->value.size() + kAlign - 1) / kAlign * kAlign;
  }
  values_ = Tensor::zeros({total}, dtype);
  gradients_ = Tensor::zeros({total}, dtype);
  for (size_t i = 0; i < found.size(); ++i) {
    Entry& entry = entries_[i];
    Parameter& parameter = *found[i].second;
    const Shape shape = parameter.value.shape();
    entry.value = values_.slice(entry.offset, shape.size()).reshaped(shape);
    entry.gradient = gradients_.slice(entry.offset, shape.size()).reshaped(shape);
    entry.value.copy_from(parameter.value.converted(dtype));
    parameter.value = entry.value;
    parameter.gradient = entry.gradient;
  }
}

const ParameterStore::Entry* ParameterStore::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace heed
