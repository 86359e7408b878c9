// SPDX-License-Identifier: Apache-2.0
#include "heed/io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "heed/base/file.h"
#include "heed/io/quote.h"

namespace heed::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descr {
  std::string_view text;
  ElementType type;
};
constexpr Descr kDescrs[] = {{"|b1", ElementType::boolean}, {"|i1", ElementType::i8},  {"|u1", ElementType::u8},
                             {"<i2", ElementType::i16},     {"<u2", ElementType::u16}, {"<i4", ElementType::i32},
                             {"<u4", ElementType::u32},     {"<i8", ElementType::i64}, {"<u8", ElementType::u64},
                             {"<f2", ElementType::f16},     {"<f4", ElementType::f32}, {"<f8", ElementType::f64}};

std::string descr_of(ElementType type, const std::string& name) {
  const auto found = std::ranges::find(kDescrs, type, &Descr::type);
  if (found == std::end(kDescrs)) throw Error(name + ": npy has no elements of type " + name_of(type));
  return std::string(found->text);
}

ElementType type_of(std::string_view descr, const std::string& name) {
  const auto found = std::ranges::find(kDescrs, descr, &Descr::text);
  if (found != std::end(kDescrs)) return found->type;
  std::string known;
  for (const Descr& one : kDescrs) known.append(" ").append(one.text);
  throw Error(name + ": descr is " + quote(descr) + ", expected one of" + known);
}

struct Header {
  std::string_view descr;
  bool fortran_order = false;
  Shape shape;
};

// Reads the header's dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }: of all that Python could
// write there, only what NumPy does.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header read() {
    Header header;
    bool descr = false, fortran_order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        once(descr, key);
        header.descr = string();
      } else if (key == "fortran_order") {
        once(fortran_order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(shape, key);
        header.shape = tuple();
      } else {
        fail("key " + quote(key) + ", expected 'descr', 'fortran_order' or 'shape'");
      }
      if (!accept(',') && !at('}')) fail_here("',' or '}'");
    }
    skip_spaces();
    if (at_ != text_.size()) fail_here("nothing after '}'");
    if (!descr || !fortran_order || !shape) fail("lacks one of the keys 'descr', 'fortran_order' and 'shape'");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(name_ + ": header: " + what); }
  [[noreturn]] void fail_here(const std::string& expected) const {
    fail((at_ < text_.size() ? quote(text_.substr(at_, 1)) : "the end") + " at byte " + std::to_string(at_) +
         ", expected " + expected);
  }
  void once(bool& seen, std::string_view key) const {
    if (seen) fail("key " + quote(key) + " comes twice");
    seen = true;
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool at(char c) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    const bool found = at(c);
    at_ += found;
    return found;
  }
  void expect(char c) {
    if (!accept(c)) fail_here(quote({&c, 1}));
  }

  std::string_view string() {
    const char mark = at('"') ? '"' : '\'';
    if (!accept(mark)) fail_here("a string");
    const size_t end = text_.find(mark, at_);
    if (end == std::string_view::npos) fail_here("a string that ends");
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail_here("True or False");
  }
  // (), (3,), (3, 4) or (3, 4,)
  Shape tuple() {
    Shape shape;
    bool comma = true;
    expect('(');
    while (!accept(')')) {
      if (!comma) fail_here("',' or ')'");
      if (shape.size() == kMaxRank) fail("shape has more than " + std::to_string(kMaxRank) + " extents");
      shape.push_back(integer());
      comma = accept(',');
    }
    if (shape.size() == 1 && !comma)
      fail("shape is a number in brackets, expected a tuple such as (" + std::to_string(shape[0]) + ",)");
    return shape;
  }
  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) fail_here("an extent from 0 to 2^63 - 1");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

// Cuts the header out of a file; `rest` becomes what follows it.
std::string_view header_of(std::string_view& rest, const std::string& name) {
  const auto take = [&](uint64_t count, const char* what) {
    if (rest.size() < count) {
      throw Error(name + ": " + std::to_string(rest.size()) + " bytes are left for " + what + ", expected " +
                  std::to_string(count));
    }
    const std::string_view part = rest.substr(0, count);
    rest.remove_prefix(count);
    return part;
  };
  const auto byte = [](char c) { return uint32_t{static_cast<unsigned char>(c)}; };

  const std::string_view magic = take(kMagic.size(), "the magic string");
  if (magic != kMagic) throw Error(name + ": begins with " + quote(magic) + ", expected " + quote(kMagic));
  const std::string_view version = take(2, "the version");
  const uint32_t major = byte(version[0]), minor = byte(version[1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw Error(name + ": version is " + std::to_string(major) + "." + std::to_string(minor) +
                ", expected 1.0, 2.0 or 3.0");
  }
  const std::string_view length = take(major == 1 ? 2 : 4, "the header's length");
  uint32_t count = 0;
  for (size_t i = 0; i < length.size(); ++i) count |= byte(length[i]) << 8 * i;
  return take(count, "the header");
}

// Everything before the elements, which begin at a multiple of 64.
std::string make_header(const NpyArray& array, const std::string& name) {
  std::string shape;
  for (const int64_t extent : array.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  if (array.shape.size() == 1) shape += ',';
  std::string dictionary =
      "{'descr': '" + descr_of(array.type, name) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  constexpr size_t kPrefix = 10;  // magic string, version, length
  dictionary.append(63 - (kPrefix + dictionary.size()) % 64, ' ').append("\n");
  std::string header(kMagic);
  for (const size_t byte : {size_t{1}, size_t{0}, dictionary.size() & 0xFF, dictionary.size() >> 8}) {
    header += static_cast<char>(byte);
  }
  return header + dictionary;
}

}  // namespace

void NpyArray::require(ElementType expected) const {
  if (type != expected) {
    throw Error(std::string("npy: elements are ") + name_of(type) + ", expected " + name_of(expected));
  }
}

NpyArray parse_npy(std::span<const std::byte> file, const std::string& name) {
  std::string_view rest(reinterpret_cast<const char*>(file.data()), file.size());
  const Header header = HeaderReader(header_of(rest, name), name).read();
  const ElementType type = type_of(header.descr, name);
  if (header.fortran_order) {
    throw Error(name + ": fortran_order is True, expected False: save it in C order (numpy.ascontiguousarray)");
  }
  const std::optional<uint64_t> count = byte_count(header.shape, type);
  if (count != rest.size()) {
    throw Error(name + ": " + std::to_string(rest.size()) + " bytes follow the header, expected " +
                (count ? std::to_string(*count) : "more than any file has") + ": shape is " + to_string(header.shape) +
                ", descr is " + quote(header.descr));
  }
  const auto bytes = std::as_bytes(std::span(rest));
  const auto is_boolean = [](std::byte byte) { return byte <= std::byte{1}; };
  if (type == ElementType::boolean && !std::ranges::all_of(bytes, is_boolean)) {
    throw Error(name + ": a boolean is neither 0 nor 1");
  }
  return {.type = type, .shape = header.shape, .bytes = {bytes.begin(), bytes.end()}};
}

NpyArray read_npy(const std::string& path) { return parse_npy(MappedFile(path).bytes(), path); }

void write_npy(const std::string& path, const NpyArray& array) {
  if (array.shape.size() > kMaxRank) {
    throw Error(path + ": shape has rank " + std::to_string(array.shape.size()) + ", expected at most " +
                std::to_string(kMaxRank));
  }
  const std::optional<uint64_t> count = byte_count(array.shape, array.type);
  if (count != array.bytes.size()) {
    throw Error(path + ": array has " + std::to_string(array.bytes.size()) + " bytes, expected " +
                (count ? std::to_string(*count) : "more than any file has") + ": shape is " + to_string(array.shape));
  }
  const std::string header = make_header(array, path);
  AtomicFile file(path);
  file.append(std::as_bytes(std::span(header)));
  file.append(array.bytes);
  file.commit();
}

}  // namespace heed::io
