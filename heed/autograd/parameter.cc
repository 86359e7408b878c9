// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/parameter.h"

#include <algorithm>

#include "heed/base/error.h"

namespace heed {

void ParameterStore::lay_out(const std::vector<std::pair<std::string, Parameter*>>& found,
                             const ParameterStoreOptions& options) {
  with_float("parameters", options.dtype, [](auto) {});  // throws for what cannot be trained in
  constexpr int64_t kAlign = 16;                         // numbers: a cache line of f32
  int64_t total = 0;
  for (const auto& [name, parameter] : found) {
    if (find(name)) throw Error("parameters: the name '" + name + "' came twice, expected each once");
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (found[i].second == parameter) {
        throw Error("parameters: '" + name + "' is '" + entries_[i].name + "' again, expected each once");
      }
    }
    entries_.push_back({name, total, {}, {}, parameter->decay});
    const int64_t size = parameter->shape().size();
    count_ += size;
    total += (size + kAlign - 1) / kAlign * kAlign;
  }
  if (options.gradients && !options.flat) throw Error("parameters: gradients came, expected a flat store for them");
  if (options.flat) values_ = Tensor::zeros({total}, options.dtype);
  if (options.gradients) gradients_ = Tensor::zeros({total}, options.dtype);
  for (size_t i = 0; i < found.size(); ++i) {
    Entry& entry = entries_[i];
    Parameter& parameter = *found[i].second;
    const Shape shape = parameter.shape();
    const auto part_of = [&](const Tensor& all) { return all.slice(entry.offset, shape.size()).reshaped(shape); };
    entry.value = options.flat ? part_of(values_) : Tensor::uninitialised(shape, options.dtype);
    if (options.gradients) entry.gradient = part_of(gradients_);
    if (parameter.value) entry.value.copy_from(parameter.value.converted(options.dtype));
    parameter.value = entry.value;
    parameter.gradient = entry.gradient;
    parameter.unfilled_shape.reset();
  }
}

void ParameterStore::release(Parameter& parameter) {
  if (values_) throw Error("parameters: release was called, expected a store that is not flat");
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return parameter.value && e.value && e.value.raw() == parameter.value.raw();
  });
  if (found == entries_.end()) throw Error("parameters: release was called for a parameter that is not of this store");
  parameter.unfilled_shape = parameter.value.shape();
  parameter.value = found->value = Tensor();
  released_ = true;
}

const ParameterStore::Entry* ParameterStore::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace heed
