// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON text as a series of events, so that a reader keeps only what it wants of it. Stricter than most: a key that
// comes twice is an error, and so is nesting beyond kMaxJsonDepth. Not here: what the values mean (config.h,
// safetensors.h).
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "heed/base/export.h"

namespace heed::io {

inline constexpr size_t kMaxJsonDepth = 32;

// An integer beyond int64_t is a double.
using JsonScalar = std::variant<std::nullptr_t, bool, int64_t, double, std::string>;

// As messages show it: null, true, 3, 0.5, 'text'.
HEED_API std::string shown(const JsonScalar& value);

class HEED_API JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void begin_object() = 0;
  virtual void key(const std::string& name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
  virtual void value(const JsonScalar& scalar) = 0;
};

// `name` is what messages call the text. The events come in order until the first error is thrown.
HEED_API void parse_json(std::string_view text, const std::string& name, JsonEvents& events);

// A string with its quotes and escapes; throws if it is not UTF-8.
HEED_API std::string json_string(const std::string& text);
// The shortest digits that read back as this finite number.
HEED_API std::string json_number(double value);
HEED_API std::string json_number(float value);

}  // namespace heed::io
