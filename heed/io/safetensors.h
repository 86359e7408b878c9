// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named arrays in the safetensors format: a length, a JSON header, and the bytes of all arrays without gaps between
// them. The reader checks all of it before it hands out anything. Not here: which names a model has
// (models/parameter_file.h).
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/file.h"
#include "heed/io/element.h"

namespace heed::io {

// A named array of a file.
struct TensorEntry {
  std::string name;
  ElementType type{};
  Shape shape;
  std::span<const std::byte> bytes;  // borrowed, row-major, little-endian; need not be aligned
};

// The arrays and metadata of a file.
struct HEED_API SafetensorsContent {
  std::vector<TensorEntry> tensors;             // sorted by name
  std::map<std::string, std::string> metadata;  // `__metadata__`

  // Null if there is none of this name.
  const TensorEntry* find(std::string_view name) const;
};

// The entries borrow from `file`. `name` is what messages call it.
HEED_API SafetensorsContent parse_safetensors(std::span<const std::byte> file, const std::string& name);

// A file that stays mapped for as long as its entries are used.
class HEED_API SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  const std::vector<TensorEntry>& tensors() const { return content_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return content_.metadata; }
  // Throws if there is none of this name.
  const TensorEntry& at(std::string_view name) const;
  // Its bytes will not be read again soon: the memory that they were read into is given back.
  void forget(const TensorEntry& tensor) const noexcept { file_.forget(tensor.bytes); }

 private:
  std::string path_;
  MappedFile file_;
  SafetensorsContent content_;
};

// Tensors in any order; in the file the widest elements come first, then the order is by name, and the first begins at
// a multiple of 8 bytes. Written to a temporary name and renamed.
HEED_API void write_safetensors(const std::string& path, std::vector<TensorEntry> tensors,
                                const std::map<std::string, std::string>& metadata = {});

}  // namespace heed::io
