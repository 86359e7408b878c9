// SPDX-License-Identifier: Apache-2.0
#include "heed/io/safetensors.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "heed/base/error.h"
#include "heed/io/json.h"
#include "heed/io/nearest.h"
#include "heed/io/quote.h"

namespace heed::io {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr size_t kLengthBytes = 8;
constexpr const char* kMetadata = "__metadata__";

struct HeaderEntry {
  std::string name;
  ElementType type{};
  Shape shape = {};
  std::vector<int64_t> offsets = {};  // begin and end in the buffer

  uint64_t begin() const { return static_cast<uint64_t>(offsets[0]); }
  uint64_t end() const { return static_cast<uint64_t>(offsets[1]); }
};

// {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
class HeaderEvents final : public JsonEvents {
 public:
  explicit HeaderEvents(const std::string& file) : file_(file) {}

  void begin_object() override {
    if (depth_ == 2) unexpected("an object");
    if (depth_ == 1 && !in_metadata()) entries.push_back({.name = name_});
    fields_ = 0;
    ++depth_;
  }
  void key(const std::string& key) override {
    (depth_ == 1 ? name_ : field_) = key;
    ++fields_;
    const bool known = key == "dtype" || key == "shape" || key == "data_offsets";
    if (depth_ == 2 && !in_metadata() && !known) {
      fail("has the key " + quote(key) + ", expected only dtype, shape and data_offsets");
    }
  }
  void end_object() override {
    if (--depth_ != 1 || in_metadata()) return;
    const HeaderEntry& entry = entries.back();
    if (fields_ != 3) fail("lacks one of the keys dtype, shape and data_offsets");
    if (entry.offsets.size() != 2 || entry.begin() > entry.end()) {
      fail("data_offsets are " + to_string(entry.offsets) + ", expected [begin, end] with begin <= end");
    }
  }
  void begin_array() override {
    if (in_array() || depth_ < 2 || in_metadata() || field_ == "dtype") unexpected("an array");
    numbers_ = field_ == "shape" ? &entries.back().shape : &entries.back().offsets;
  }
  void end_array() override { numbers_ = nullptr; }
  void value(const JsonScalar& scalar) override {
    if (in_array()) {
      const int64_t* number = std::get_if<int64_t>(&scalar);
      if (!number || *number < 0) unexpected(shown(scalar));
      if (numbers_->size() == kMaxRank) fail(field_ + " has more than " + std::to_string(kMaxRank) + " numbers");
      numbers_->push_back(*number);
      return;
    }
    const std::string* text = std::get_if<std::string>(&scalar);
    if (depth_ < 2 || !text || !(in_metadata() || field_ == "dtype")) unexpected(shown(scalar));
    if (in_metadata()) {
      metadata[field_] = *text;
    } else {
      const std::optional<ElementType> type = element_type_named(*text);
      if (!type) fail("dtype is " + quote(*text) + ", which is not known");
      entries.back().type = *type;
    }
  }

  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;

 private:
  bool in_metadata() const { return name_ == kMetadata; }
  bool in_array() const { return numbers_ != nullptr; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(file_ + ": " + (in_metadata() ? name_ : "tensor " + quote(name_)) + ": " + what);
  }
  [[noreturn]] void unexpected(const std::string& what) const {
    if (depth_ < 2) fail("is " + what + ", expected an object");
    const bool string = in_metadata() || field_ == "dtype";
    fail(quote(field_) + (in_array() ? " holds " : " is ") + what + ", expected " +
         (string ? "a string" : "an array of integers from 0 to 2^63 - 1"));
  }

  const std::string& file_;
  int fields_ = 0;            // of the open object: none comes twice and none is unknown, so that three are all
  int depth_ = 0;             // of objects
  std::string name_, field_;  // the last keys at depth 1 and 2
  std::vector<int64_t>* numbers_ = nullptr;  // of the open array
};

std::string_view header_of(std::string_view file, const std::string& name) {
  if (file.size() < kLengthBytes) {
    throw Error(name + ": has " + std::to_string(file.size()) + " bytes, expected at least 8");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{static_cast<unsigned char>(file[i])} << 8 * i;
  const std::string_view rest = file.substr(kLengthBytes);
  if (length > kMaxHeader) {
    throw Error(name + ": header has " + std::to_string(length) + " bytes, expected at most " +
                std::to_string(kMaxHeader));
  }
  if (length > rest.size()) {
    throw Error(name + ": header has " + std::to_string(length) + " bytes, but only " + std::to_string(rest.size()) +
                " follow its length");
  }
  const std::string_view header = rest.substr(0, length);
  if (!header.starts_with('{'))
    throw Error(name + ": header begins with " + quote(header.substr(0, 1)) + ", expected '{'");
  return header;
}

// Without gaps and overlaps, from the beginning of the buffer to its end.
void check_places(std::vector<HeaderEntry>& entries, uint64_t buffer, const std::string& name) {
  std::ranges::sort(entries, {}, [](const HeaderEntry& e) { return std::pair(e.begin(), e.end()); });
  uint64_t end = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin() != end) {
      throw Error(name + ": tensor " + quote(entry.name) + ": begins at byte " + std::to_string(entry.begin()) +
                  " of the buffer, expected " + std::to_string(end) + ", where the one before it ends");
    }
    end = entry.end();
  }
  if (end != buffer) {
    throw Error(name + ": tensors end at byte " + std::to_string(end) + " of the buffer, expected " +
                std::to_string(buffer) + ", where the file ends");
  }
}

void check_size(const TensorEntry& tensor, const std::string& name) {
  const std::optional<uint64_t> expected = byte_count(tensor.shape, tensor.type);
  if (expected == tensor.bytes.size()) return;
  throw Error(name + ": tensor " + quote(tensor.name) + ": has " + std::to_string(tensor.bytes.size()) +
              " bytes, expected " + (expected ? std::to_string(*expected) : "more than any file has") + ": shape is " +
              to_string(tensor.shape) + ", dtype is " + name_of(tensor.type));
}

// What the reader would throw for is not written.
void check_writable(const std::vector<TensorEntry>& tensors, const std::string& name) {
  std::set<std::string_view> names;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.name == kMetadata) throw Error(name + ": a tensor is called " + kMetadata + ", which is reserved");
    if (!names.insert(tensor.name).second) throw Error(name + ": tensor " + quote(tensor.name) + ": comes twice");
    if (tensor.shape.size() > kMaxRank) {
      throw Error(name + ": tensor " + quote(tensor.name) + ": has rank " + std::to_string(tensor.shape.size()) +
                  ", expected at most " + std::to_string(kMaxRank));
    }
    check_size(tensor, name);
  }
}

std::string make_header(const std::vector<TensorEntry>& tensors, const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  const auto comma = [](std::string& text) { text += text.back() == '{' ? "" : ","; };
  if (!metadata.empty()) {
    header += '"' + std::string(kMetadata) + "\":{";
    for (const auto& [key, text] : metadata) {
      comma(header);
      header += json_string(key) + ':' + json_string(text);
    }
    header += '}';
  }
  uint64_t begin = 0;
  for (const TensorEntry& tensor : tensors) {
    comma(header);
    const uint64_t end = begin + tensor.bytes.size();
    std::string shape = to_string(tensor.shape);
    std::erase(shape, ' ');
    header += json_string(tensor.name) + ":{\"dtype\":\"" + name_of(tensor.type) + "\",\"shape\":" + shape +
              ",\"data_offsets\":[" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
    begin = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  return header;
}

}  // namespace

const TensorEntry* SafetensorsContent::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors, name, {}, &TensorEntry::name);
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

SafetensorsContent parse_safetensors(std::span<const std::byte> file, const std::string& name) {
  const std::string_view header = header_of({reinterpret_cast<const char*>(file.data()), file.size()}, name);
  const std::span<const std::byte> buffer = file.subspan(kLengthBytes + header.size());
  HeaderEvents events(name);
  parse_json(header, name, events);
  check_places(events.entries, buffer.size(), name);

  SafetensorsContent content;
  content.metadata = std::move(events.metadata);
  content.tensors.reserve(events.entries.size());
  for (HeaderEntry& entry : events.entries) {
    content.tensors.push_back({.name = std::move(entry.name),
                               .type = entry.type,
                               .shape = std::move(entry.shape),
                               .bytes = buffer.subspan(entry.begin(), entry.end() - entry.begin())});
    check_size(content.tensors.back(), name);
  }
  std::ranges::sort(content.tensors, {}, &TensorEntry::name);
  return content;
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(path), content_(parse_safetensors(file_.bytes(), path)) {}

const TensorEntry& SafetensorsFile::at(std::string_view name) const {
  const TensorEntry* const found = content_.find(name);
  if (found) return *found;
  std::vector<std::string> names;
  for (const TensorEntry& tensor : tensors()) names.push_back(tensor.name);
  const std::optional<std::string> near = nearest(name, names);
  throw Error(path_ + ": has no tensor " + quote(name) + " among its " + std::to_string(tensors().size()) +
              (near ? ", did you mean " + quote(*near) + "?" : ""));
}

void write_safetensors(const std::string& path, std::vector<TensorEntry> tensors,
                       const std::map<std::string, std::string>& metadata) {
  check_writable(tensors, path);
  std::ranges::sort(tensors, [](const TensorEntry& a, const TensorEntry& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
  const std::string header = make_header(tensors, metadata);
  if (header.size() > kMaxHeader) {
    throw Error(path + ": header would have " + std::to_string(header.size()) + " bytes, expected at most " +
                std::to_string(kMaxHeader));
  }
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) length += static_cast<char>(uint64_t{header.size()} >> 8 * i & 0xFF);
  AtomicFile file(path);
  file.append(std::as_bytes(std::span(length)));
  file.append(std::as_bytes(std::span(header)));
  for (const TensorEntry& tensor : tensors) file.append(tensor.bytes);
  file.commit();
}

}  // namespace heed::io
