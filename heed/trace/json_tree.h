// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON text as a tree, for formats whose readers look a field up by its name. Internal.
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heed/io/json.h"

namespace heed::trace {

struct JsonTree {
  using Array = std::vector<JsonTree>;
  using Object = std::vector<std::pair<std::string, JsonTree>>;  // in the order of the text
  std::variant<io::JsonScalar, Array, Object> value{};

  const Array* array() const { return std::get_if<Array>(&value); }
  const Object* object() const { return std::get_if<Object>(&value); }
  const io::JsonScalar* scalar() const { return std::get_if<io::JsonScalar>(&value); }
  const JsonTree* find(std::string_view key) const;  // null where this is no object that has it
};

// Throws Error, with `name`, for what is no JSON.
JsonTree parse_tree(std::string_view text, const std::string& name);
// As messages show it: 3, 'text', a list, an object.
std::string shown(const JsonTree& tree);

}  // namespace heed::trace
