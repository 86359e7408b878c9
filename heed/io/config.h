// SPDX-License-Identifier: Apache-2.0
#pragma once
// An option struct as JSON, by the list of its fields (base/describe.h). A file may leave fields out, which then keep
// their values; all else it holds must be right: an unknown key, a key that comes twice, a value of another kind or
// outside its range is an error, and the options stay as they were.
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "heed/base/describe.h"
#include "heed/base/export.h"

namespace heed::io {

inline constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// For fields that are only known at run time: the function passes them to a visitor.
using ShowFields = std::function<void(FieldVisitor&)>;
HEED_API std::string fields_to_json(const ShowFields& fields);
HEED_API void fields_from_json(std::string_view text, const std::string& name, const ShowFields& fields);
// At most kMaxConfigBytes.
HEED_API std::string read_config_text(const std::string& path);
HEED_API void write_config_text(const std::string& path, const std::string& text);

template <Described T>
std::string to_json(T options) {
  return fields_to_json([&](FieldVisitor& visitor) { visit_fields(options, visitor); });
}

// `name` is what messages call the text.
template <Described T>
void from_json(std::string_view text, T& options, const std::string& name) {
  T filled = options;
  fields_from_json(text, name, [&](FieldVisitor& visitor) { visit_fields(filled, visitor); });
  options = std::move(filled);
}

template <Described T>
void read_config(const std::string& path, T& options) {
  from_json(read_config_text(path), options, path);
}

// Written to a temporary name and renamed.
template <Described T>
void write_config(const std::string& path, const T& options) {
  write_config_text(path, to_json(options));
}

}  // namespace heed::io
