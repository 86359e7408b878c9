#include "heed/models/parameter_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/io/safetensors.h"
#include "heed/io/tensor.h"

namespace heed::models {
namespace {

using Entry = ParameterStore::Entry;

// "'a', 'b', 'c' and 14 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i ? ", '" : "'") + names[i] + "'";
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

std::string counted(size_t n, const std::string& what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

bool is_number_type(io::ElementType type) {
  using enum io::ElementType;
  return type == f16 || type == bf16 || type == f32 || type == f64;
}

// A parameter and the tensor of the file that it is loaded from.
struct Assignment {
  const Entry* parameter;
  const io::TensorEntry* tensor;
  bool transposed;
};

void check_fits(const std::string& path, const Assignment& a) {
  const Shape& wanted = a.parameter->value.shape();
  io::Shape expected;
  for (size_t i = 0; i < wanted.rank(); ++i) expected.push_back(wanted[static_cast<int>(i)]);
  if (a.transposed && expected.size() == 2) std::swap(expected[0], expected[1]);
  io::Shape came = a.tensor->shape;
  while (came.size() > expected.size() && came.front() == 1) came.erase(came.begin());
  const bool right_type = is_number_type(a.tensor->type), right_rank = !a.transposed || wanted.rank() == 2;
  if (right_type && right_rank && came == expected) return;
  const std::string& name = a.parameter->name;
  throw Error(path + ": tensor '" + a.tensor->name + "'" + (a.tensor->name == name ? "" : " for '" + name + "'") +
              " is " + io::name_of(a.tensor->type) + " " + io::to_string(a.tensor->shape) + ", expected " +
              (right_type ? "" : "F16, BF16, F32 or F64 ") + io::to_string(expected) +
              (!a.transposed ? ""
               : right_rank  ? " to be transposed"
                             : " and no transposition, which is for matrices"));
}

// Which tensor each parameter gets. Throws where one has none or two, or a tensor is left over.
std::vector<Assignment> assign(const std::string& path, const io::SafetensorsFile& file,
                               const ParameterStore& parameters, const LoadOptions& options) {
  std::map<std::string, const io::TensorEntry*> tensor_of;
  std::vector<std::string> extra, missing;
  for (const io::TensorEntry& tensor : file.tensors()) {
    const std::string name = options.rename ? options.rename(tensor.name) : tensor.name;
    if (name.empty()) continue;
    if (!parameters.find(name)) {
      if (!options.ignore_extra) extra.push_back(tensor.name);
      continue;
    }
    const auto [at, added] = tensor_of.try_emplace(name, &tensor);
    if (!added) {
      throw Error(path + ": tensors '" + at->second->name + "' and '" + tensor.name + "' are both for '" + name +
                  "', expected one");
    }
  }
  std::vector<Assignment> all;
  for (const Entry& entry : parameters.entries()) {
    const auto found = tensor_of.find(entry.name);
    if (found == tensor_of.end()) {
      missing.push_back(entry.name);
    } else {
      const io::TensorEntry& tensor = *found->second;
      all.push_back({&entry, &tensor, options.transpose && options.transpose(tensor.name)});
    }
  }
  std::string wrong;
  if (!missing.empty())
    wrong = "has no tensor for " + counted(missing.size(), "parameter") + " (" + listed(missing) + ")";
  if (!extra.empty()) {
    wrong += (wrong.empty() ? "" : "; ") + std::string("has ") + counted(extra.size(), "tensor") +
             " that no parameter of this model has the name of (" + listed(extra) + ")";
  }
  if (!wrong.empty()) throw Error(path + ": " + wrong);
  return all;
}

template <class T>
void transpose_into(std::span<const T> from, const Tensor& to) {
  const int64_t rows = to.shape(0), columns = to.shape(1);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to.data<T>()[r * columns + c] = from[static_cast<size_t>(c * rows + r)];
  }
}

void fill(const Assignment& a) {
  const Tensor& to = a.parameter->value;
  with_float("load_parameters", to.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (!a.transposed && a.tensor->type == io::kElementType<T>) {
      std::memcpy(to.raw(), a.tensor->bytes.data(), to.bytes());
      return;
    }
    const std::vector<T> numbers = io::convert<T>(a.tensor->type, a.tensor->bytes);
    if (a.transposed) {
      transpose_into<T>(numbers, to);
    } else {
      std::copy(numbers.begin(), numbers.end(), to.template data<T>());
    }
  });
}

}  // namespace

std::function<std::string(const std::string&)> replace_parts(std::vector<std::pair<std::string, std::string>> parts) {
  return [parts = std::move(parts)](const std::string& tensor) {
    std::string name = tensor;
    for (const auto& [from, to] : parts) {
      for (size_t at = name.find(from); at != name.npos; at = name.find(from, at + to.size())) {
        name.replace(at, from.size(), to);
      }
    }
    return name;
  };
}

void load_parameters(const std::string& path, const ParameterStore& parameters, const LoadOptions& options) {
  const io::SafetensorsFile file(path);
  const std::vector<Assignment> all = assign(path, file, parameters, options);
  for (const Assignment& one : all) check_fits(path, one);
  for (const Assignment& one : all) fill(one);
}

void load_parameters(const ParameterSource& source, const ParameterStore& parameters) {
  std::vector<std::pair<const Entry*, Tensor>> all;
  std::vector<std::string> missing;
  for (const Entry& entry : parameters.entries()) {
    const Tensor values = source(entry.name);
    if (!values) {
      missing.push_back(entry.name);
      continue;
    }
    const bool is_number = values.dtype() == DType::f32 || values.dtype() == DType::f64;
    if (!is_number || values.shape() != entry.value.shape()) {
      throw Error("load_parameters: the tensor for '" + entry.name + "' has shape " + to_string(values.shape()) +
                  " in " + name_of(values.dtype()) + ", expected " + to_string(entry.value.shape()) + " in f32 or f64");
    }
    all.emplace_back(&entry, values);
  }
  if (!missing.empty()) {
    throw Error("load_parameters: no tensor came for " + counted(missing.size(), "parameter") + " (" + listed(missing) +
                ")");
  }
  for (const auto& [entry, values] : all) entry->value.copy_from(values.converted(entry->value.dtype()));
}

void save_parameters(const ParameterStore& parameters, const std::string& path) {
  std::vector<io::TensorEntry> entries;
  for (const Entry& entry : parameters.entries()) {
    entries.push_back(io::entry_of(entry.name, entry.value));
  }
  io::write_safetensors(path, std::move(entries), {{"format", "heed"}});
}

}  // namespace heed::models
