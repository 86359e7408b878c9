// SPDX-License-Identifier: Apache-2.0
#include "heed/io/json.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "heed/base/describe.h"
#include "heed/base/error.h"
#include "heed/io/quote.h"

namespace heed::io {
namespace {

using Json = nlohmann::json;

// What nlohmann-json calls while it parses; its own tree would keep the last of several equal keys and say nothing.
class Sax final : public nlohmann::json_sax<Json> {
 public:
  Sax(std::string_view text, const std::string& name, JsonEvents& events) : text_(text), name_(name), events_(events) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool flag) override { return value(flag); }
  bool number_integer(int64_t number) override { return value(number); }
  bool number_unsigned(uint64_t number) override {
    if (number > uint64_t{INT64_MAX}) return value(static_cast<double>(number));
    return value(static_cast<int64_t>(number));
  }
  bool number_float(double number, const std::string&) override { return value(number); }
  bool string(std::string& text) override { return value(std::move(text)); }
  bool binary(Json::binary_t&) override { return false; }  // not in text

  bool start_object(size_t) override {
    enter();
    events_.begin_object();
    return true;
  }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) throw Error(name_ + ": key " + quote(name) + " comes twice");
    events_.key(name);
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    events_.end_object();
    return true;
  }
  bool start_array(size_t) override {
    enter();
    events_.begin_array();
    return true;
  }
  bool end_array() override {
    keys_.pop_back();
    events_.end_array();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    const std::string_view before = text_.substr(0, position > 0 ? position - 1 : 0);
    const auto line = std::ranges::count(before, '\n') + 1;
    const size_t newline = before.rfind('\n');
    const size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
    throw Error(name_ + ": not valid JSON at line " + std::to_string(line) + ", column " + std::to_string(column));
  }

 private:
  bool value(const JsonScalar& scalar) {
    events_.value(scalar);
    return true;
  }
  void enter() {
    if (keys_.size() == kMaxJsonDepth) {
      throw Error(name_ + ": nested more than " + std::to_string(kMaxJsonDepth) + " deep");
    }
    keys_.emplace_back();
  }

  std::string_view text_;
  const std::string& name_;
  JsonEvents& events_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each open object; none of an array
};

// With a sign that it is no integer.
template <class T>
std::string real_number(T value) {
  const std::string digits = shortest(value);
  return digits.find_first_not_of("-0123456789") == std::string::npos ? digits + ".0" : digits;
}

}  // namespace

std::string shown(const JsonScalar& value) {
  struct Show {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return shortest(number); }
    std::string operator()(const std::string& text) const { return quote(text); }
  };
  return std::visit(Show{}, value);
}

void parse_json(std::string_view text, const std::string& name, JsonEvents& events) {
  Sax sax(text, name, events);
  Json::sax_parse(text.begin(), text.end(), &sax);
}

std::string json_string(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    throw Error("text is not UTF-8: " + quote(text));
  }
}

std::string json_number(double value) { return real_number(value); }
std::string json_number(float value) { return real_number(value); }

}  // namespace heed::io
