// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/trace_file.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/io/json.h"
#include "heed/io/quote.h"
#include "heed/trace/base64.h"
#include "heed/trace/fields.h"
#include "heed/trace/json_tree.h"

namespace heed::trace {
namespace {

template <class T>
concept Enum = std::is_enum_v<T>;

// ---- writing ----

class Writer {
 public:
  std::string take() { return std::move(text_); }

  void write(bool value) { text_ += value ? "true" : "false"; }
  void write(int64_t value) { text_ += std::to_string(value); }
  void write(double value) {
    if (!std::isfinite(value)) throw Error("trace: a number is not finite, expected numbers that JSON has");
    text_ += io::json_number(value);
  }
  void write(const std::string& value) { text_ += io::json_string(value); }
  void write(const Ref& value) { write(value.name); }
  template <Enum E>
  void write(E value) {
    for (const EnumName<E>& one : enum_names(E{})) {
      if (one.value == value) text_ += io::json_string(std::string(one.name));
    }
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value) write(*value);
  }
  template <class T>
  void write(const std::vector<T>& list) {
    // A line each for what has parts of its own.
    const bool lines = !std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>;
    text_ += "[";
    bool first = true;
    for (const T& one : list) {
      text_ += first ? (lines ? "\n" : "") : (lines ? ",\n" : ",");
      first = false;
      write(one);
    }
    text_ += "]";
  }
  template <class T>
  void write(const T& part) requires requires(T& o) {
    fields(o, [](auto&&...) {});
  }
  {
    text_ += "{";
    write_fields(part);
    text_ += "}";
  }

  template <class T>
  void write_fields(const T& part) {
    // The list of fields is one for readers and writers; here it changes nothing.
    fields(const_cast<T&>(part), [this](const char* name, const auto& value, auto... optional) {
      if (is_absent(value, optional...)) return;
      key(name);
      write(value);
    });
  }
  void key(const std::string& name) {
    if (text_.back() != '{') text_ += ",";
    text_ += io::json_string(name) + ":";
  }
  void raw(std::string_view text) { text_ += text; }

 private:
  static bool is_absent(const auto&) { return false; }
  template <class T>
  static bool is_absent(const std::optional<T>& value) {
    return !value;
  }
  static bool is_absent(const Ref& value) { return !value; }
  template <class T>
  static bool is_absent(const std::vector<T>& list, Optional) {
    return list.empty();
  }

  std::string text_;
};

void write_array(Writer& to, const Array& array) {
  to.raw("{");
  to.key("shape"), to.write(array.shape);
  to.key("dtype"), to.write(array.dtype);
  if (array.dtype == Storage::u8n) {
    to.key("min"), to.write(array.low);
    to.key("max"), to.write(array.high);
  }
  to.key("enc"), to.write(std::string("base64"));
  to.key("crc32"), to.write(int64_t{crc32(array.bytes)});
  to.key("data");
  to.raw("\"" + to_base64(array.bytes) + "\"}");
}

// ---- reading ----

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(name_ + ": " + at_ + (at_.empty() || what.starts_with('.') ? "" : " ") + what);
  }

  // Reads at a place below this one, which messages name.
  template <class T>
  void at(const std::string& place, const JsonTree& tree, T& value) {
    const size_t before = at_.size();
    at_ += place;
    read(tree, value);
    at_.resize(before);
  }

  void read(const JsonTree& tree, bool& value) const { value = scalar<bool>(tree, "true or false"); }
  void read(const JsonTree& tree, int64_t& value) const { value = scalar<int64_t>(tree, "a whole number"); }
  void read(const JsonTree& tree, std::string& value) const { value = scalar<std::string>(tree, "text"); }
  void read(const JsonTree& tree, double& value) const {
    const io::JsonScalar* one = tree.scalar();
    if (const int64_t* whole = one ? std::get_if<int64_t>(one) : nullptr) {
      value = static_cast<double>(*whole);
    } else {
      value = scalar<double>(tree, "a number");
    }
    if (!std::isfinite(value)) fail("is " + shown(tree) + ", expected a finite number");
  }
  void read(const JsonTree& tree, Ref& value) const {
    read(tree, value.name);
    if (!value) fail("is empty, expected the name of a tensor");
  }
  template <Enum E>
  void read(const JsonTree& tree, E& value) const {
    const auto text = scalar<std::string>(tree, "text");
    std::string names;
    for (const EnumName<E>& one : enum_names(E{})) {
      names += (names.empty() ? "" : ", ") + std::string(one.name);
      if (one.name != text) continue;
      value = one.value;
      return;
    }
    fail("is " + io::quote(text) + ", expected one of " + names);
  }
  template <class T>
  void read(const JsonTree& tree, std::optional<T>& value) {
    read(tree, value.emplace());
  }
  template <class T>
  void read(const JsonTree& tree, std::vector<T>& list) {
    const JsonTree::Array* items = tree.array();
    if (!items) fail("is " + shown(tree) + ", expected a list");
    list.clear();
    for (size_t i = 0; i < items->size(); ++i) at("[" + std::to_string(i) + "]", (*items)[i], list.emplace_back());
  }
  template <class T>
  void read(const JsonTree& tree, T& part) requires requires(T& o) {
    fields(o, [](auto&&...) {});
  }
  {
    if (!tree.object()) fail("is " + shown(tree) + ", expected an object");
    fields(part, [&](const char* name, auto& value, auto... optional) {
      const JsonTree* field = tree.find(name);
      if (field) return at((at_.empty() ? "" : ".") + std::string(name), *field, value);
      if (!may_be_absent(value, optional...)) fail("has no " + std::string(name) + ", expected one");
    });
  }

  void read(const JsonTree& tree, Array& array) {
    if (!tree.object()) fail("is " + shown(tree) + ", expected an object");
    read_field(tree, "shape", array.shape);
    read_field(tree, "dtype", array.dtype);
    if (array.dtype == Storage::u8n) {
      read_field(tree, "min", array.low), read_field(tree, "max", array.high);
      constexpr double kLargest = 1e30;  // both ends, and what lies between them, are floats
      if (std::abs(array.low) > kLargest || std::abs(array.high) > kLargest) fail("has min or max beyond 1e30");
    }
    std::string encoding, text;
    read_field(tree, "enc", encoding);
    if (encoding != "base64") fail(".enc is " + io::quote(encoding) + ", expected 'base64'");
    read_field(tree, "data", text);
    auto bytes = from_base64(text);
    if (!bytes) fail(".data is no base64, or cut off: " + std::to_string(text.size()) + " characters");
    array.bytes = std::move(*bytes);
    if (const JsonTree* sum = tree.find("crc32")) {
      int64_t expected = 0;
      at(".crc32", *sum, expected);
      const int64_t came = crc32(array.bytes);
      if (came != expected) {
        fail(".data has the check sum " + std::to_string(came) + ", expected " + std::to_string(expected) +
             ": it is not what was written");
      }
    }
    check_finite(array);
  }

  template <class T>
  void read_field(const JsonTree& tree, const std::string& name, T& value) {
    const JsonTree* field = tree.find(name);
    if (!field) fail("has no " + name + ", expected one");
    at("." + name, *field, value);
  }

 private:
  template <class T>
  T scalar(const JsonTree& tree, const char* expected) const {
    const io::JsonScalar* one = tree.scalar();
    if (const T* value = one ? std::get_if<T>(one) : nullptr) return *value;
    fail("is " + shown(tree) + ", expected " + expected);
  }

  // An array whose length is no multiple of its numbers is left to Trace::check.
  void check_finite(const Array& array) const {
    if (array.dtype == Storage::u32) return;
    for (const float one : array.values()) {
      if (!std::isfinite(one)) fail(".data has a number that is not finite, expected finite ones");
    }
  }

  static bool may_be_absent(const auto&) { return false; }
  template <class T>
  static bool may_be_absent(const std::optional<T>&) {
    return true;
  }
  static bool may_be_absent(const Ref&) { return true; }
  template <class T>
  static bool may_be_absent(const std::vector<T>&, Optional) {
    return true;
  }

  std::string name_, at_;
};

void check_version(Reader& reader, const JsonTree& root) {
  std::string format, version;
  if (!root.object()) reader.fail("is " + shown(root) + ", expected a trace, which is an object");
  if (!root.find("format")) reader.fail("there is no format, expected '" + std::string(kFormat) + "': it is no trace");
  reader.at("format", *root.find("format"), format);
  if (format != kFormat) reader.fail("format is " + io::quote(format) + ", expected '" + kFormat + "'");
  if (!root.find("version")) reader.fail("there is no version, expected one");
  reader.at("version", *root.find("version"), version);
  const std::string major = version.substr(0, version.find('.'));
  if (major != std::to_string(kMajorVersion)) {
    reader.fail("version is " + io::quote(version) + ", expected " + std::to_string(kMajorVersion) +
                ".x: it was written by another heed");
  }
}

}  // namespace

std::string to_json(const Trace& trace) {
  trace.check();
  Writer to;
  to.raw("{");
  to.key("format"), to.write(std::string(kFormat));
  to.key("version"), to.write(std::to_string(kMajorVersion) + "." + std::to_string(kMinorVersion));
  to.write_fields(trace);
  to.key("tensors");
  to.raw("{");
  for (const auto& [name, array] : trace.tensors) {
    to.key(name);
    to.raw("\n");
    write_array(to, array);
  }
  to.raw("}}\n");
  return to.take();
}

Trace from_json(std::string_view text, const std::string& name) {
  const JsonTree root = parse_tree(text, name);
  Reader reader(name);
  check_version(reader, root);
  Trace trace;
  reader.read(root, trace);
  const JsonTree* tensors = root.find("tensors");
  if (!tensors || !tensors->object()) reader.fail("tensors is missing or no object, expected an object");
  for (const auto& [key, tree] : *tensors->object())
    reader.at("tensors[" + io::quote(key) + "]", tree, trace.tensors[key]);
  try {
    trace.check();
  } catch (const Error& error) {
    throw Error(name + ": " + error.what());
  }
  return trace;
}

void save(const std::string& path, const Trace& trace) {
  const std::string text = to_json(trace);
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

Trace load(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path, kMaxTraceBytes);
  return from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace heed::trace
