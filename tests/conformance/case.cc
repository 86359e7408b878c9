// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/base/error.h"

namespace heed::conformance {
namespace {

using Json = nlohmann::json;
using Path = std::filesystem::path;
using Named = std::map<std::string, Tensor>;

Json read_json(const Path& path) {
  std::ifstream file(path);
  if (!file) throw Error(path.string() + ": cannot be opened, expected the description of a case");
  try {
    return Json::parse(file);
  } catch (const Json::exception& error) {
    throw Error(path.string() + ": " + error.what());
  }
}

std::optional<io::ElementType> element_type(const std::string& numpy_name) {
  using enum io::ElementType;
  static const std::map<std::string, io::ElementType> known = {{"bool", boolean}, {"float16", f16}, {"float32", f32},
                                                               {"float64", f64},  {"int32", i32},   {"int64", i64}};
  const auto found = known.find(numpy_name);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

Tensor read_tensor(const Path& folder, const Json& entry) {
  const Path path = folder / entry.at("file").get<std::string>();
  const auto dtype = entry.at("dtype").get<std::string>(), stored = entry.at("stored").get<std::string>();
  const auto shape = entry.at("shape").get<io::Shape>();
  if (stored != dtype && !(dtype == "bfloat16" && stored == "float32")) {
    throw Error(path.string() + ": " + dtype + " is stored as " + stored + ", expected " + dtype);
  }
  Tensor tensor{dtype, io::read_npy(path.string())};
  const auto& [type, found_shape, bytes] = tensor.array;
  if (element_type(stored) != type) {
    throw Error(path.string() + ": holds " + io::name_of(type) + ", expected " + stored + " as case.json says");
  }
  if (found_shape != shape) {
    throw Error(path.string() + ": has shape " + io::to_string(found_shape) + ", expected " + io::to_string(shape) +
                " as case.json says");
  }
  return tensor;
}

Named read_tensors(const Path& folder, const Json& entries) {
  Named tensors;
  for (const Json& entry : entries) tensors[entry.at("name").get<std::string>()] = read_tensor(folder, entry);
  return tensors;
}

// The node names its tensors in the operator's order, with "" for one that is left out.
std::vector<std::optional<Tensor>> in_order(const Json& names, Named tensors, const std::string& where) {
  std::vector<std::optional<Tensor>> ordered;
  for (const std::string name : names) {
    if (name.empty()) {
      ordered.emplace_back();
      continue;
    }
    auto tensor = tensors.extract(name);
    if (!tensor) throw Error(where + ": the node names the tensor '" + name + "', which has no file");
    ordered.emplace_back(std::move(tensor.mapped()));
  }
  if (!tensors.empty()) throw Error(where + ": the node does not name the tensor '" + tensors.begin()->first + "'");
  return ordered;
}

Attribute to_attribute(const std::string& name, const Json& value, const std::string& where) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  throw Error(where + ": attribute '" + name + "' is " + value.dump() + ", expected a number or a text");
}

const Json& only_one(const Json& description, const char* what, const std::string& where) {
  const Json& list = description.at(what);
  if (list.size() != 1) {
    throw Error(where + ": has " + std::to_string(list.size()) + " " + what + ", expected one");
  }
  return list[0];
}

Case parse(const Path& folder, const Json& description) {
  const std::string where = (folder / "case.json").string();
  const Json &node = only_one(description, "nodes", where), &set = only_one(description, "sets", where);
  if (!description.at("initializers").empty()) throw Error(where + ": has initializers, expected none");
  if (!node.at("domain").get<std::string>().empty()) throw Error(where + ": the node is of another domain than ONNX's");
  Case c{.name = description.at("case"), .op = node.at("op"), .opset = description.at("opset").at("ai.onnx")};
  for (const auto& [name, value] : node.at("attributes").items()) c.attributes[name] = to_attribute(name, value, where);
  c.inputs = in_order(node.at("inputs"), read_tensors(folder, set.at("inputs")), where);
  c.outputs = in_order(node.at("outputs"), read_tensors(folder, set.at("outputs")), where);
  return c;
}

template <class T>
std::optional<T> get(const Case& c, const std::string& attribute, const char* expected) {
  const auto found = c.attributes.find(attribute);
  if (found == c.attributes.end()) return std::nullopt;
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  c.refuse("attribute '" + attribute + "' is not " + expected);
}

}  // namespace

Case Case::read(const Path& folder) {
  const Json description = read_json(folder / "case.json");
  try {
    return parse(folder, description);
  } catch (const Json::exception& error) {
    throw Error((folder / "case.json").string() + ": " + error.what());
  }
}

void Case::require(const Signature& known) const {
  if (op != known.op) refuse("the operator is " + op + ", expected " + known.op);
  if (opset < known.first_opset || opset > known.last_opset) {
    refuse("the opset is " + std::to_string(opset) + ", expected " + std::to_string(known.first_opset) + " to " +
           std::to_string(known.last_opset));
  }
  const auto limit = [&](const char* what, size_t count, size_t most) {
    if (count > most) {
      refuse("has " + std::to_string(count) + " " + what + ", expected at most " + std::to_string(most));
    }
  };
  limit("inputs", inputs.size(), known.inputs.size());
  limit("outputs", outputs.size(), known.outputs.size());
  for (const auto& [attribute, value] : attributes) {
    if (std::find(known.attributes.begin(), known.attributes.end(), attribute) == known.attributes.end()) {
      refuse("attribute '" + attribute + "' is not known here");
    }
  }
}

std::optional<int64_t> Case::integer(const std::string& attribute) const {
  return get<int64_t>(*this, attribute, "an integer");
}

std::optional<double> Case::number(const std::string& attribute) const {
  return get<double>(*this, attribute, "a number with a fraction");
}

std::optional<std::string> Case::text(const std::string& attribute) const {
  return get<std::string>(*this, attribute, "a text");
}

void Case::refuse(const std::string& why) const { throw Error(name + ": " + why); }

}  // namespace heed::conformance
