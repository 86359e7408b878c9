// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parameters, the tensors that a model learns. A layer holds them as members and names them in visit(); a
// ParameterStore lays all of a model's out in one flat buffer of values and one of gradients, so that clipping, an
// optimiser's step, averaging and saving are single loops.
//
//   struct Linear {
//     Parameter weight, bias;
//     void visit(auto&& each) { each("weight", weight); each("bias", bias); }
//   };
//
// visit() may name parameters, layers, and vectors of layers; names are joined by dots: "layers.0.norm.weight".
//
// A model that is made to be loaded has unfilled parameters: a shape without numbers, which the store allocates. One
// that is opened for inference alone may give the numbers of a parameter back, once it has them in another form.
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/autograd/tape.h"
#include "heed/base/export.h"
#include "heed/tensor/tensor.h"

namespace heed {

// A learned tensor and its gradient.
struct Parameter {
  Tensor value{};
  Tensor gradient{};                      // as large as the value, once in a store that keeps gradients
  bool decay = true;                      // weight decay applies: not to biases, norms and gates
  std::optional<Shape> unfilled_shape{};  // of one that has no numbers yet, or no longer

  static Parameter unfilled(const Shape& shape) { return {.unfilled_shape = shape}; }
  // A layer may leave out what it does not need, such as a bias.
  bool exists() const { return value || unfilled_shape; }
  Shape shape() const { return unfilled_shape ? *unfilled_shape : value.shape(); }
};

// The dtype of a store, and whether it has gradients.
struct ParameterStoreOptions {
  DType dtype{DType::f32};  // f64: to check gradients
  bool gradients{true};     // without them a model only runs forward, in half the memory
  bool flat{true};          // one buffer for all; otherwise each has its own memory, which release() can give back
};

namespace detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace detail

// each(name, Parameter&) for every parameter of a module, in the order it names them.
template <class Module, class Each>
void visit_parameters(Module& module, const Each& each, const std::string& prefix = "") {
  module.visit([&](const char* name, auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    const std::string path = prefix + name;
    if constexpr (std::is_same_v<Member, Parameter>) {
      if (member.exists()) each(path, member);
    } else if constexpr (detail::IsVector<Member>::value) {
      for (size_t i = 0; i < member.size(); ++i)
        visit_parameters(member[i], each, path + "." + std::to_string(i) + ".");
    } else {
      visit_parameters(member, each, path + ".");
    }
  });
}

// each(Layer&) for every layer of a type in a module, in the order it names them.
template <class Layer, class Module, class Each>
void visit_layers(Module& module, const Each& each) {
  if constexpr (std::is_same_v<Module, Layer>) {
    each(module);
  } else if constexpr (detail::IsVector<Module>::value) {
    for (auto& element : module) visit_layers<Layer>(element, each);
  } else if constexpr (!std::is_same_v<Module, Parameter>) {
    module.visit([&](const char*, auto& member) { visit_layers<Layer>(member, each); });
  }
}

// All parameters of a model, in one flat buffer of values and one of gradients.
class HEED_API ParameterStore {
 public:
  struct Entry {
    std::string name;
    int64_t offset;          // in the flat buffers
    Tensor value, gradient;  // gradient: empty where none are kept
    bool decay;
  };

  // Lays out the parameters of `module`, which from now on are views into this store. Those that are unfilled are zero;
  // in a store that is not flat, which is made to be loaded, they hold anything. The module must not be copied after
  // that.
  template <class Module>
  ParameterStore(Module& module, const ParameterStoreOptions& options) {
    std::vector<std::pair<std::string, Parameter*>> found;
    visit_parameters(module, [&](const std::string& name, Parameter& p) { found.emplace_back(name, &p); });
    lay_out(found, options);
  }
  template <class Module>
  explicit ParameterStore(Module& module, DType dtype = DType::f32)
      : ParameterStore(module, ParameterStoreOptions{.dtype = dtype}) {}
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& name) const;
  // [n]: all of them, with gaps of zeros that keep each aligned. Empty where the store is not flat.
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }  // empty where none are kept
  int64_t count() const { return count_; }                // numbers, without the gaps
  void clear_gradients() const {
    if (gradients_) gradients_.fill(0);
  }
  // Gives the memory of one parameter back: it keeps its shape and has no numbers any more. Throws Error where the
  // store is flat, or the parameter is not of this store.
  void release(Parameter&);
  // Whether release() was called.
  bool has_released() const { return released_; }

 private:
  void lay_out(const std::vector<std::pair<std::string, Parameter*>>& found, const ParameterStoreOptions&);

  std::vector<Entry> entries_;
  Tensor values_, gradients_;
  int64_t count_ = 0;
  bool released_ = false;
};

}  // namespace heed
