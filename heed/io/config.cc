// SPDX-License-Identifier: Apache-2.0
#include "heed/io/config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "heed/base/file.h"
#include "heed/io/json.h"
#include "heed/io/nearest.h"
#include "heed/io/quote.h"

namespace heed::io {
namespace {

// The value of a key: a scalar, an object with children, or an array, whose content no field takes.
struct Node {
  enum class Kind { scalar, object, array };
  std::string key = {};
  Kind kind = Kind::scalar;
  JsonScalar scalar = nullptr;
  std::vector<Node> children = {};
};

class TreeBuilder final : public JsonEvents {
 public:
  void begin_object() override {
    if (arrays_ == 0) open_.push_back({.key = key_, .kind = Node::Kind::object});
  }
  void key(const std::string& name) override { key_ = name; }
  void end_object() override {
    if (arrays_ == 0) close();
  }
  void begin_array() override {
    if (arrays_++ == 0) open_.push_back({.key = key_, .kind = Node::Kind::array});
  }
  void end_array() override {
    if (--arrays_ == 0) close();
  }
  void value(const JsonScalar& scalar) override {
    if (arrays_ == 0) add({.key = key_, .scalar = scalar});
  }
  Node root;

 private:
  void close() {
    Node node = std::move(open_.back());
    open_.pop_back();
    add(std::move(node));
  }
  void add(Node node) {
    if (open_.empty()) {
      root = std::move(node);
    } else {
      open_.back().children.push_back(std::move(node));
    }
  }

  std::vector<Node> open_;
  std::string key_;
  int arrays_ = 0;  // that are open
};

std::string shown(const Node& node) {
  if (node.kind == Node::Kind::scalar) return io::shown(node.scalar);
  return node.kind == Node::Kind::object ? "an object" : "an array";
}

// Sets each field from the node of its name, and sees that no node is left.
class Reader final : public FieldVisitor {
 public:
  Reader(const Node& root, const std::string& name) : name_(name) { levels_.push_back({.node = &root}); }

  void field(const FieldInfo& info, int64_t& value) override {
    const Node* node = find(info);
    if (!node) return;
    const int64_t* number = std::get_if<int64_t>(&node->scalar);
    if (!number) fail(info, *node, "an integer" + to_string(info.range));
    check_range(name_, info, *number);
    value = *number;
  }
  void field(const FieldInfo& info, float& value) override {
    const std::optional<double> number = real(info);
    if (!number) return;
    value = static_cast<float>(*number);
    if (!std::isfinite(value)) {
      throw Error(name_ + ": " + info.path + " is " + shortest(*number) + ", expected a number that fits into 32 bits");
    }
    check_range(name_, info, value);
  }
  void field(const FieldInfo& info, double& value) override {
    const std::optional<double> number = real(info);
    if (!number) return;
    check_range(name_, info, *number);
    value = *number;
  }
  void field(const FieldInfo& info, bool& value) override {
    const Node* node = find(info);
    if (!node) return;
    const bool* flag = std::get_if<bool>(&node->scalar);
    if (!flag) fail(info, *node, "true or false");
    value = *flag;
  }
  void field(const FieldInfo& info, std::string& value) override {
    const Node* node = find(info);
    if (!node) return;
    const std::string* text = std::get_if<std::string>(&node->scalar);
    if (!text) fail(info, *node, "a string");
    value = *text;
  }
  void field(const FieldInfo& info, Choice& value) override {
    const Node* node = find(info);
    if (!node) return;
    const std::string* text = std::get_if<std::string>(&node->scalar);
    const auto found = text ? std::ranges::find(value.names, *text) : value.names.end();
    if (found == value.names.end()) {
      std::string names;
      for (const std::string_view one : value.names) names.append(names.empty() ? "" : ", ").append(quote(one));
      fail(info, *node, "one of " + names);
    }
    value.chosen = static_cast<size_t>(found - value.names.begin());
  }
  void begin_struct(const FieldInfo& info) override {
    const Node* node = find(info);
    if (node && node->kind != Node::Kind::object) fail(info, *node, "an object");
    levels_.push_back({.node = node, .prefix = info.path + "."});
  }
  void end_struct() override {
    fail_unknown();
    levels_.pop_back();
  }

  bool takes_legacy() const override { return true; }

  void fail_unknown() const {
    const Level& level = levels_.back();
    if (!level.node) return;
    for (const Node& child : level.node->children) {
      if (std::ranges::find(level.known, child.key) != level.known.end()) continue;
      if (std::ranges::find(level.legacy, child.key) != level.legacy.end()) continue;
      const std::optional<std::string> near = nearest(child.key, level.known);
      std::string names;
      for (const std::string& one : level.known) names.append(names.empty() ? "" : ", ").append(one);
      throw Error(name_ + ": unknown key " + quote(level.prefix + child.key) +
                  (near ? ", did you mean " + quote(level.prefix + *near) + "?" : ", expected one of " + names));
    }
  }

 private:
  struct Level {
    const Node* node;  // null: the file has nothing of this struct
    std::string prefix = {};
    std::vector<std::string> known = {};
    std::vector<std::string> legacy = {};  // known, but not to be suggested
  };

  const Node* find(const FieldInfo& info) {
    Level& level = levels_.back();
    (info.legacy ? level.legacy : level.known).emplace_back(info.name);
    if (!level.node) return nullptr;
    const auto found = std::ranges::find(level.node->children, info.name, &Node::key);
    return found == level.node->children.end() ? nullptr : &*found;
  }
  std::optional<double> real(const FieldInfo& info) {
    const Node* node = find(info);
    if (!node) return std::nullopt;
    const double* number = std::get_if<double>(&node->scalar);
    const int64_t* integer = std::get_if<int64_t>(&node->scalar);
    if (!number && !integer) fail(info, *node, "a number" + to_string(info.range));
    return number ? *number : static_cast<double>(*integer);
  }
  [[noreturn]] void fail(const FieldInfo& info, const Node& node, const std::string& expected) const {
    throw Error(name_ + ": " + info.path + " is " + shown(node) + ", expected " + expected);
  }

  const std::string& name_;
  std::vector<Level> levels_;
};

class Writer final : public FieldVisitor {
 public:
  void field(const FieldInfo& info, int64_t& value) override { line(info, std::to_string(value)); }
  void field(const FieldInfo& info, float& value) override { real(info, value); }
  void field(const FieldInfo& info, double& value) override { real(info, value); }
  void field(const FieldInfo& info, bool& value) override { line(info, value ? "true" : "false"); }
  void field(const FieldInfo& info, std::string& value) override { line(info, json_string(value)); }
  void field(const FieldInfo& info, Choice& value) override {
    line(info, json_string(std::string(value.names[value.chosen])));
  }
  void begin_struct(const FieldInfo& info) override {
    line(info, "{");
    ++depth_;
    first_ = true;
  }
  void end_struct() override {
    --depth_;
    if (!first_) text_.append("\n").append(indent());
    text_ += '}';
    first_ = false;
  }
  std::string text() const { return text_ + (first_ ? "}\n" : "\n}\n"); }

 private:
  template <class T>
  void real(const FieldInfo& info, T value) {
    if (!std::isfinite(value))
      throw Error("to_json: " + info.path + " is " + shortest(value) + ", expected a finite number");
    line(info, json_number(value));
  }
  void line(const FieldInfo& info, const std::string& value) {
    text_.append(first_ ? "\n" : ",\n").append(indent());
    text_.append(json_string(std::string(info.name))).append(": ").append(value);
    first_ = false;
  }
  std::string indent() const { return std::string(2 * depth_, ' '); }

  std::string text_ = "{";
  size_t depth_ = 1;
  bool first_ = true;  // in the open object
};

}  // namespace

std::string fields_to_json(const ShowFields& fields) {
  Writer writer;
  fields(writer);
  return writer.text();
}

void fields_from_json(std::string_view text, const std::string& name, const ShowFields& fields) {
  if (text.size() > kMaxConfigBytes) {
    throw Error(name + ": has " + std::to_string(text.size()) + " bytes, expected at most " +
                std::to_string(kMaxConfigBytes));
  }
  TreeBuilder tree;
  parse_json(text, name, tree);
  if (tree.root.kind != Node::Kind::object) throw Error(name + ": is " + shown(tree.root) + ", expected an object");
  Reader reader(tree.root, name);
  fields(reader);
  reader.fail_unknown();
}

std::string read_config_text(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxConfigBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_config_text(const std::string& path, const std::string& text) {
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace heed::io
