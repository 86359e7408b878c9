// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays in NumPy's npy format, versions 1 to 3: little-endian, in C order, without objects or records.
// Not here: npz archives.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/export.h"
#include "heed/io/element.h"

namespace heed::io {

// An element type, a shape and the bytes.
struct HEED_API NpyArray {
  ElementType type{};
  Shape shape;                   // [] is a single number
  std::vector<std::byte> bytes;  // row-major

  template <class T>
  static NpyArray of(const Shape& shape, std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    return {.type = kElementType<T>, .shape = shape, .bytes = {bytes.begin(), bytes.end()}};
  }

  // The elements as they are; throws if they are of another type.
  template <class T>
  std::span<const T> as() const {
    require(kElementType<T>);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // Each rounded to the nearest; a boolean is 0 or 1.
  std::vector<float> as_floats() const { return convert<float>(type, bytes); }
  std::vector<double> as_doubles() const { return convert<double>(type, bytes); }

 private:
  void require(ElementType expected) const;
};

// `name` is what messages call the source of the bytes.
HEED_API NpyArray parse_npy(std::span<const std::byte> file, const std::string& name);
HEED_API NpyArray read_npy(const std::string& path);

// Version 1 of the format. Written to a temporary name and renamed.
HEED_API void write_npy(const std::string& path, const NpyArray& array);

}  // namespace heed::io
