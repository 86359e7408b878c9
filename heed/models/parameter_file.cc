// SPDX-License-Identifier: Apache-2.0
#include "heed/models/parameter_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/error.h"
#include "heed/io/quote.h"
#include "heed/io/tensor.h"
#include "heed/kernels/weight.h"

namespace heed::models {
namespace {

using Entry = ParameterStore::Entry;

// "'a', 'b', 'c' and 14 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i ? ", " : "") + io::quote(names[i]);
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

std::string counted(size_t n, const std::string& what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

bool is_number_type(io::ElementType type) {
  using enum io::ElementType;
  return type == f16 || type == bf16 || type == f32 || type == f64;
}

constexpr std::string_view kScale = ".scale";

// The scales of a matrix in I8; null where the tensor is none.
const io::TensorEntry* scales_of(const io::SafetensorsFile& file, const io::TensorEntry& matrix) {
  if (matrix.type != io::ElementType::i8 || matrix.shape.size() != 2) return nullptr;
  const std::string name = matrix.name + std::string(kScale);
  for (const io::TensorEntry& tensor : file.tensors()) {
    const bool fits = tensor.type == io::ElementType::f32 && tensor.shape == io::Shape{matrix.shape[0]};
    if (fits && tensor.name == name) return &tensor;
  }
  return nullptr;
}

bool is_scales(const io::SafetensorsFile& file, const std::string& name) {
  if (!name.ends_with(kScale)) return false;
  const std::string_view matrix(name.data(), name.size() - kScale.size());
  return std::any_of(file.tensors().begin(), file.tensors().end(), [&](const io::TensorEntry& tensor) {
    return tensor.name == matrix && scales_of(file, tensor) != nullptr;
  });
}

// A parameter, by its number, and the tensor of the file that it is loaded from.
struct Assignment {
  size_t parameter;
  const io::TensorEntry* tensor;
  bool transposed;
  const io::TensorEntry* scales;  // of a matrix in I8
};

io::Shape extents_of(const Shape& shape) {
  io::Shape extents;
  for (size_t i = 0; i < shape.rank(); ++i) extents.push_back(shape[static_cast<int>(i)]);
  return extents;
}

void check_fits(const std::string& path, const Assignment& a, const ParameterShape& parameter,
                const LoadOptions& options) {
  io::Shape expected = extents_of(parameter.shape);
  const bool right_rank = !a.transposed || expected.size() == 2;
  if (a.transposed && right_rank) std::swap(expected[0], expected[1]);
  io::Shape came = a.tensor->shape;
  while (came.size() > expected.size() && came.front() == 1) came.erase(came.begin());
  const bool right_type = is_number_type(a.tensor->type) || (a.scales && !a.transposed);
  if (right_type && right_rank && came == expected) return;
  const std::string& name = parameter.name;
  throw Error(path + ": tensor " + io::quote(a.tensor->name) + (a.tensor->name == name ? "" : " for '" + name + "'") +
              " is " + io::name_of(a.tensor->type) + " " + io::to_string(a.tensor->shape) + ", expected " +
              (right_type                              ? ""
               : a.tensor->type == io::ElementType::i8 ? "F16, BF16, F32 or F64, or scales in F32 for its rows, "
                                                       : "F16, BF16, F32 or F64 ") +
              io::to_string(expected) + (options.expected_by.empty() ? "" : " by " + options.expected_by) +
              (!a.transposed ? ""
               : right_rank  ? " to be transposed"
                             : " and no transposition, which is for matrices"));
}

// "has no tensor for 2 parameters ('a', 'b'); has 1 tensor that no parameter of this model has the name of ('c')"
std::string unmatched(const std::vector<std::string>& missing, const std::vector<std::string>& extra,
                      const LoadOptions& options) {
  std::string wrong;
  if (!missing.empty()) {
    wrong = "has no tensor for " + counted(missing.size(), "parameter") +
            (options.expected_by.empty() ? "" : " that " + options.expected_by + " asks for") + " (" + listed(missing) +
            ")";
  }
  if (!extra.empty()) {
    wrong += (wrong.empty() ? "" : "; ") + std::string("has ") + counted(extra.size(), "tensor") +
             " that no parameter of this model has the name of (" + listed(extra) + ")";
  }
  return wrong;
}

// Which tensor each parameter gets. Throws where one has none or two, or a tensor is left over.
std::vector<Assignment> assign(const std::string& path, const io::SafetensorsFile& file,
                               const std::vector<ParameterShape>& parameters, const LoadOptions& options) {
  std::map<std::string_view, size_t> number_of;
  for (size_t i = 0; i < parameters.size(); ++i) number_of[parameters[i].name] = i;
  std::vector<const io::TensorEntry*> tensor_of(parameters.size(), nullptr);
  std::vector<std::string> extra, missing;
  for (const io::TensorEntry& tensor : file.tensors()) {
    const std::string name = options.rename ? options.rename(tensor.name) : tensor.name;
    if (name.empty()) continue;
    const auto number = number_of.find(name);
    if (number == number_of.end()) {
      if (!options.ignore_extra && !is_scales(file, tensor.name)) extra.push_back(tensor.name);
      continue;
    }
    const io::TensorEntry*& taken = tensor_of[number->second];
    if (taken) {
      throw Error(path + ": tensors " + io::quote(taken->name) + " and " + io::quote(tensor.name) + " are both for '" +
                  name + "', expected one");
    }
    taken = &tensor;
  }
  std::vector<Assignment> all;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const io::TensorEntry* const tensor = tensor_of[i];
    if (!tensor) {
      missing.push_back(parameters[i].name);
    } else {
      all.push_back({i, tensor, options.transpose && options.transpose(tensor->name), scales_of(file, *tensor)});
    }
  }
  const std::string wrong = unmatched(missing, extra, options);
  if (!wrong.empty()) throw Error(path + ": " + wrong);
  for (const Assignment& one : all) check_fits(path, one, parameters[one.parameter], options);
  return all;
}

template <class T>
void transpose_into(std::span<const T> from, const Tensor& to) {
  const int64_t rows = to.shape(0), columns = to.shape(1);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to.data<T>()[r * columns + c] = from[static_cast<size_t>(c * rows + r)];
  }
}

// A number is not finite where all bits of its exponent are set. A block of a known size without a branch, which a
// compiler makes vectors of.
constexpr size_t kBlock = 1024;
template <class T>
bool block_is_finite(const T* numbers) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr auto kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits wrong = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const auto exponent = std::bit_cast<Bits>(numbers[i]) & kExponent;
    wrong |= exponent == kExponent ? ~Bits{0} : Bits{0};
  }
  return wrong == 0;
}

// Throws where one of `count` numbers from the tensor's number `first` on is infinite or NaN.
template <class T>
void check_finite(const std::string& path, const io::TensorEntry& tensor, const T* numbers, size_t first,
                  size_t count) {
  if (count == kBlock && block_is_finite(numbers)) return;
  for (size_t i = 0; i < count; ++i) {
    if (std::isfinite(numbers[i])) continue;
    io::Shape place = tensor.shape;
    size_t rest = first + i;
    for (size_t d = place.size(); d-- > 0; rest /= static_cast<size_t>(tensor.shape[d])) {
      place[d] = static_cast<int64_t>(rest % static_cast<size_t>(tensor.shape[d]));
    }
    throw Error(path + ": tensor " + io::quote(tensor.name) + " holds " + shortest(numbers[i]) + " at " +
                io::to_string(place) + ", expected finite numbers");
  }
}

// Block by block, so that what is looked at is in the cache from being copied.
template <class T>
void copy_finite(const std::string& path, const io::TensorEntry& tensor, const std::byte* from, const Tensor& to) {
  const auto all = static_cast<size_t>(to.size());
  for (size_t first = 0; first < all; first += kBlock) {
    const size_t count = std::min(kBlock, all - first);
    std::memcpy(to.data<T>() + first, from + first * sizeof(T), count * sizeof(T));
    check_finite(path, tensor, to.data<T>() + first, first, count);
  }
}

// q times the scale of its row: exact where heed has written them.
template <class T>
void fill_int8(const std::string& path, const Assignment& a, const Tensor& to) {
  const std::vector<float> scales = io::convert<float>(a.scales->type, a.scales->bytes);
  check_finite(path, *a.scales, scales.data(), 0, scales.size());
  const int64_t rows = to.shape(0), columns = to.shape(1);
  const auto* const q = reinterpret_cast<const int8_t*>(a.tensor->bytes.data());
  for (int64_t r = 0; r < rows; ++r) {
    const float scale = scales[static_cast<size_t>(r)];
    for (int64_t i = r * columns; i < (r + 1) * columns; ++i) {
      if (q[i] < -127) {
        throw Error(path + ": tensor " + io::quote(a.tensor->name) + " holds -128 at [" + std::to_string(r) + ", " +
                    std::to_string(i - r * columns) + "], expected -127 to 127");
      }
      to.data<T>()[i] = static_cast<T>(q[i]) * static_cast<T>(scale);
    }
    check_finite(path, *a.tensor, to.data<T>() + r * columns, static_cast<size_t>(r * columns),
                 static_cast<size_t>(columns));
  }
}

void fill(const std::string& path, const Assignment& a, const Tensor& to) {
  if (a.scales) {
    return with_float("load_parameters", to.dtype(), [&](auto tag) { fill_int8<decltype(tag)>(path, a, to); });
  }
  with_float("load_parameters", to.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (!a.transposed && a.tensor->type == io::kElementType<T>) {
      return copy_finite<T>(path, *a.tensor, a.tensor->bytes.data(), to);
    }
    const std::vector<T> numbers = io::convert<T>(a.tensor->type, a.tensor->bytes);
    if (a.transposed) {
      check_finite(path, *a.tensor, numbers.data(), 0, numbers.size());
      transpose_into<T>(numbers, to);
    } else {
      copy_finite<T>(path, *a.tensor, std::as_bytes(std::span(numbers)).data(), to);
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

ParameterFile::ParameterFile(const std::string& path) : path_(path), file_(path) {}

void ParameterFile::check(const std::vector<ParameterShape>& parameters, const LoadOptions& options) const {
  assign(path_, file_, parameters, options);
}

void ParameterFile::load(const ParameterStore& parameters, const LoadOptions& options) const {
  std::vector<ParameterShape> shapes;
  for (const Entry& entry : parameters.entries()) shapes.push_back({entry.name, entry.value.shape()});
  for (const Assignment& one : assign(path_, file_, shapes, options)) {
    fill(path_, one, parameters.entries()[one.parameter].value);
    file_.forget(*one.tensor);  // or the file and the parameters would be in memory together
  }
}

void load_parameters(const std::string& path, const ParameterStore& parameters, const LoadOptions& options) {
  ParameterFile(path).load(parameters, options);
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

namespace {

// A matrix in int8 and the scales of its rows.
struct Int8Matrix {
  std::vector<int8_t> q;
  std::vector<float> scales;

  explicit Int8Matrix(const Tensor& value) : q(static_cast<size_t>(value.size())) {
    Parallel one(1);
    const kernels::PackedWeight packed(value.view<const float, 2>(), DType::i8, one);
    kernels::unpack_int8(packed, {q.data(), {value.shape(0), value.shape(1)}});
    scales.assign(packed.weight().scales(), packed.weight().scales() + value.shape(0));
  }
};

}  // namespace

void save_parameters(const ParameterStore& parameters, const std::string& path, const std::vector<std::string>& int8) {
  if (parameters.has_released()) {
    throw Error("save_parameters: a model that was packed for inference came, expected one with all its parameters");
  }
  std::vector<io::TensorEntry> entries;
  std::vector<std::unique_ptr<const Int8Matrix>> rounded;
  for (const Entry& entry : parameters.entries()) {
    entries.push_back(io::entry_of(entry.name, entry.value));
    if (std::find(int8.begin(), int8.end(), entry.name) == int8.end()) continue;
    if (entry.value.dtype() != DType::f32 || entry.value.shape(1) > kernels::Weight::kMostInt8Inputs) continue;
    const Int8Matrix& matrix = *rounded.emplace_back(std::make_unique<const Int8Matrix>(entry.value));
    io::TensorEntry& tensor = entries.back();
    tensor.type = io::ElementType::i8, tensor.bytes = std::as_bytes(std::span(matrix.q));
    entries.push_back({entry.name + std::string(kScale),
                       io::ElementType::f32,
                       {entry.value.shape(0)},
                       std::as_bytes(std::span(matrix.scales))});
  }
  io::write_safetensors(path, std::move(entries), {{"format", "heed"}});
}

}  // namespace heed::models
