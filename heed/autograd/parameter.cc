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
  values_ = Tensor::zeros({total}, options.dtype);
  if (options.gradients) gradients_ = Tensor::zeros({total}, options.dtype);
  for (size_t i = 0; i < found.size(); ++i) {
    Entry& entry = entries_[i];
    Parameter& parameter = *found[i].second;
    const Shape shape = parameter.shape();
    const auto part_of = [&](const Tensor& all) { return all.slice(entry.offset, shape.size()).reshaped(shape); };
    entry.value = part_of(values_);
    if (options.gradients) entry.gradient = part_of(gradients_);
    if (parameter.value) entry.value.copy_from(parameter.value.converted(options.dtype));
    parameter.value = entry.value;
    parameter.gradient = entry.gradient;
    parameter.unfilled_shape.reset();
  }
}

const ParameterStore::Entry* ParameterStore::find(const std::string& name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace heed
