// SPDX-License-Identifier: Apache-2.0
#pragma once
// One case of the ONNX node tests, as a folder holds it: case.json (a node with its attributes, and what its tensors
// are) and an npy file a tensor. What does not fit together is an Error, here and not later.
// Not here: what an operator does (a file each), and running them all (suite.h).
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "heed/io/npy.h"

namespace heed::conformance {

struct Tensor {
  std::string dtype;  // the operator's, as NumPy calls it. A bfloat16, which NumPy lacks, is stored as float32
  io::NpyArray array;
};

// Its numbers as double or float.
template <class T>
std::vector<T> numbers_of(const Tensor& tensor) {
  if constexpr (std::is_same_v<T, double>) {
    return tensor.array.as_doubles();
  } else {
    return tensor.array.as_floats();
  }
}

using Attribute = std::variant<int64_t, double, std::string>;

// What an operator knows of. A case that has more is one that would be judged wrongly.
struct Signature {
  std::string op;
  int64_t first_opset, last_opset;
  std::vector<std::string> inputs, outputs, attributes;
};

struct Case {
  std::string name, op;
  int64_t opset = 0;
  std::map<std::string, Attribute> attributes{};
  std::vector<std::optional<Tensor>> inputs{}, outputs{};  // by their place in the operator; nothing: left out

  static Case read(const std::filesystem::path& folder);

  void require(const Signature& signature) const;
  const Tensor* input(size_t place) const { return at(inputs, place); }  // null: left out
  const Tensor* output(size_t place) const { return at(outputs, place); }

  // Nothing if the node has no such attribute; throws if it is of another type.
  std::optional<int64_t> integer(const std::string& attribute) const;
  std::optional<double> number(const std::string& attribute) const;
  std::optional<std::string> text(const std::string& attribute) const;

  // An Error of this case.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  static const Tensor* at(const std::vector<std::optional<Tensor>>& tensors, size_t place) {
    return place < tensors.size() && tensors[place] ? &*tensors[place] : nullptr;
  }
};

}  // namespace heed::conformance
