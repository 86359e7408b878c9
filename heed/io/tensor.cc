// SPDX-License-Identifier: Apache-2.0
#include "heed/io/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/io/quote.h"
#include "heed/tensor/convert.h"

namespace heed::io {
namespace {

struct Pair {
  DType dtype;
  ElementType type;
};
constexpr Pair kPairs[] = {{DType::f32, ElementType::f32},
                           {DType::bf16, ElementType::bf16},
                           {DType::f16, ElementType::f16},
                           {DType::f64, ElementType::f64},
                           {DType::i32, ElementType::i32}};

// What safetensors and npy have in common.
struct Array {
  std::string name;
  ElementType type;
  const Shape& shape;
  std::span<const std::byte> bytes;
};

Array array_of(const TensorEntry& entry) {
  return {"tensor " + quote(entry.name), entry.type, entry.shape, entry.bytes};
}
Array array_of(const NpyArray& array) { return {"npy", array.type, array.shape, array.bytes}; }

heed::Shape checked_shape(const Array& array) {
  const heed::Shape shape = tensor_shape(array.shape, array.name);
  const auto expected = static_cast<size_t>(shape.size()) * size_of(array.type);
  if (array.bytes.size() == expected) return shape;
  throw Error(array.name + ": has " + std::to_string(array.bytes.size()) + " bytes, expected " +
              std::to_string(expected) + ": shape is " + to_string(array.shape) + ", elements are " +
              name_of(array.type));
}

// The bits as they are. They need not be aligned in the file.
Tensor copied(const Array& array, DType dtype) {
  Tensor t = Tensor::uninitialised(checked_shape(array), dtype);
  if (!array.bytes.empty()) std::memcpy(t.raw(), array.bytes.data(), array.bytes.size());
  return t;
}

bool is_integer(ElementType type) {
  switch (type) {
    case ElementType::boolean:
    case ElementType::u8:
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::u16:
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::i64:
    case ElementType::u64:
      return true;
    default:
      return false;
  }
}

// A double holds every int32 exactly, and shows which integers do not fit.
Tensor integers_of(const Array& array) {
  const heed::Shape shape = checked_shape(array);
  if (!is_integer(array.type)) {
    throw Error(array.name + ": elements are " + name_of(array.type) + ", expected integers for i32");
  }
  std::vector<int32_t> numbers;
  for (const double x : convert<double>(array.type, array.bytes)) {
    if (x < std::numeric_limits<int32_t>::min() || x > std::numeric_limits<int32_t>::max()) {
      const std::string text = std::to_string(x);
      throw Error(array.name + ": has the number " + text.substr(0, text.find('.')) +
                  ", expected one that fits in i32");
    }
    numbers.push_back(static_cast<int32_t>(x));
  }
  return Tensor::of(shape, numbers);
}

Tensor as_tensor(const Array& array) {
  if (const std::optional<DType> dtype = dtype_of(array.type)) return copied(array, *dtype);
  throw Error(array.name + ": elements are " + name_of(array.type) + ", expected F32, F64, BF16, F16 or I32");
}

Tensor as_tensor(const Array& array, DType dtype) {
  const std::optional<DType> own = dtype_of(array.type);
  if (own == dtype) return copied(array, dtype);
  if (dtype == DType::i32) return integers_of(array);
  if (own && is_floating(*own)) return copied(array, *own).converted(dtype);
  const heed::Shape shape = checked_shape(array);
  if (!is_integer(array.type)) {
    throw Error(array.name + ": elements are " + name_of(array.type) +
                ", expected integers, booleans, or real numbers of 16 bits or more");
  }
  if (dtype == DType::f32) return Tensor::of(shape, convert<float>(array.type, array.bytes));
  return Tensor::of(shape, convert<double>(array.type, array.bytes)).converted(dtype);
}

Shape extents_of(const Tensor& tensor) {
  Shape shape;
  for (size_t i = 0; i < tensor.shape().rank(); ++i) shape.push_back(tensor.shape(static_cast<int>(i)));
  return shape;
}

}  // namespace

std::optional<DType> dtype_of(ElementType type) {
  const auto found = std::ranges::find(kPairs, type, &Pair::type);
  return found == std::end(kPairs) ? std::nullopt : std::optional(found->dtype);
}

ElementType element_type_of(DType dtype) { return std::ranges::find(kPairs, dtype, &Pair::dtype)->type; }

heed::Shape tensor_shape(const Shape& shape, const std::string& name) {
  if (shape.size() > heed::Shape::kMaxRank) {
    throw Error(name + ": has shape " + to_string(shape) + ", expected at most " +
                std::to_string(heed::Shape::kMaxRank) + " dimensions");
  }
  return heed::Shape(std::span<const int64_t>(shape));
}

Tensor to_tensor(const TensorEntry& entry) { return as_tensor(array_of(entry)); }
Tensor to_tensor(const NpyArray& array) { return as_tensor(array_of(array)); }
Tensor to_tensor(const TensorEntry& entry, DType dtype) { return as_tensor(array_of(entry), dtype); }
Tensor to_tensor(const NpyArray& array, DType dtype) { return as_tensor(array_of(array), dtype); }

TensorEntry entry_of(std::string name, const Tensor& tensor) {
  if (!tensor) throw Error("tensor " + quote(name) + ": is empty, expected numbers to write");
  return {.name = std::move(name),
          .type = element_type_of(tensor.dtype()),
          .shape = extents_of(tensor),
          .bytes = {tensor.raw(), tensor.bytes()}};
}

NpyArray npy_of(const Tensor& tensor) {
  if (!tensor) throw Error("npy: the tensor is empty, expected numbers to write");
  return {.type = element_type_of(tensor.dtype()),
          .shape = extents_of(tensor),
          .bytes = {tensor.raw(), tensor.raw() + tensor.bytes()}};
}

}  // namespace heed::io
