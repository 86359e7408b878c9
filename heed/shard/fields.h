// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fields of a JSON object that a file should have, each checked as it is taken. Internal: the JSON library is no
// part of what users see.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "heed/base/error.h"
#include "heed/io/quote.h"

namespace heed::shard {

using Json = nlohmann::ordered_json;

// Text of a file as a message shows it: as it is, unless it is long or more than one printable line.
inline std::string shown(const std::string& text) {
  const std::string quoted = io::quote(text);
  return quoted == "'" + text + "'" ? text : quoted;
}

class Fields {
 public:
  // `name` is what messages call the object.
  Fields(const Json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) fail("is no object", "one with its fields");
  }

  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(quoted(key) + " is no text", "one");
    return value.get<std::string>();
  }
  int64_t number(const char* key, int64_t low, int64_t high) const {
    const Json& value = at(key);
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX)
                                                 : value.is_number_integer();
    const int64_t found = fits ? value.get<int64_t>() : low - 1;
    if (found < low || found > high) {
      fail(quoted(key) + " is " + (value.is_number() ? value.dump() : "no number"),
           "an integer from " + std::to_string(low) + " to " + std::to_string(high));
    }
    return found;
  }
  const Json& list(const char* key) const {
    const Json& value = at(key);
    if (!value.is_array()) fail(quoted(key) + " is no list", "one");
    return value;
  }

 private:
  static std::string quoted(const char* key) { return "'" + std::string(key) + "'"; }
  const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(quoted(key) + " is missing", "it");
    return *found;
  }
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    throw Error(name_ + ": " + what + ", expected " + expected);
  }

  const Json& object_;
  std::string name_;
};

// Throws Error where the text is no JSON.
inline Json parsed(std::string_view text, const std::string& name) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(name + ": is no JSON, expected an object of heed");
  return json;
}

// A path need not be UTF-8; what is not is replaced, in every process in the same way.
inline std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace heed::shard
