// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/json_tree.h"

namespace heed::trace {
namespace {

class Builder final : public io::JsonEvents {
 public:
  explicit Builder(JsonTree& root) : root_(root) {}

  void begin_object() override { open_.push_back(&add({JsonTree::Object{}})); }
  void key(const std::string& name) override { key_ = name; }
  void end_object() override { open_.pop_back(); }
  void begin_array() override { open_.push_back(&add({JsonTree::Array{}})); }
  void end_array() override { open_.pop_back(); }
  void value(const io::JsonScalar& scalar) override { add({scalar}); }

 private:
  // What is open stays where it is: only the innermost one grows.
  JsonTree& add(JsonTree&& tree) {
    if (open_.empty()) return root_ = std::move(tree);
    if (auto* object = std::get_if<JsonTree::Object>(&open_.back()->value)) {
      return object->emplace_back(std::move(key_), std::move(tree)).second;
    }
    return std::get<JsonTree::Array>(open_.back()->value).emplace_back(std::move(tree));
  }

  JsonTree& root_;
  std::vector<JsonTree*> open_;
  std::string key_;
};

}  // namespace

const JsonTree* JsonTree::find(std::string_view key) const {
  const Object* fields = object();
  if (!fields) return nullptr;
  for (const auto& [name, tree] : *fields) {
    if (name == key) return &tree;
  }
  return nullptr;
}

JsonTree parse_tree(std::string_view text, const std::string& name) {
  JsonTree root;
  Builder builder(root);
  io::parse_json(text, name, builder);
  return root;
}

std::string shown(const JsonTree& tree) {
  if (const io::JsonScalar* scalar = tree.scalar()) return io::shown(*scalar);
  return tree.array() ? "a list" : "an object";
}

}  // namespace heed::trace
