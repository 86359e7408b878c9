// SPDX-License-Identifier: Apache-2.0
#pragma once
// One list of an option struct's fields, from which flags, JSON, Python arguments and the reference page come:
//
//   enum class Norm { pre, post };
//   constexpr auto enum_names(Norm) { return std::to_array<EnumName<Norm>>({{"pre", Norm::pre}, {"post", Norm::post}});
//   }
//
//   struct LayerOptions {
//     int64_t heads = 8;
//     float dropout = 0.1f;
//     Norm norm = Norm::pre;
//
//     static void describe(LayerOptions& o, auto&& field) {
//       field("heads", o.heads, "attention heads", Range::at_least(1));
//       field("dropout", o.dropout, "share of weights that is dropped", Range::from_below(0, 1));
//       field("norm", o.norm, "where the normalisation stands");
//     }
//   };
//
// A field that files from before have and that is no more is described with Legacy{} in place of its range: readers of
// files take it, and nobody else sees it.
//
// A field is an int64_t, float, double, bool, std::string, an enum with enum_names, or another such struct. A default
// is what the struct begins with. Not here: rules that need several fields; those belong to whoever takes the options.
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/export.h"

namespace heed {

// What a number may be. Never infinite or NaN, whatever the ends.
struct Range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool without_low = false, without_high = false;

  static constexpr Range at_least(double low) { return {.low = low}; }
  static constexpr Range above(double low) { return {.low = low, .without_low = true}; }
  static constexpr Range within(double low, double high) { return {.low = low, .high = high}; }
  static constexpr Range from_below(double low, double high) {
    return {.low = low, .high = high, .without_high = true};
  }

  // A float is compared with the ends as floats: 0.1f lies within 0.1.
  template <class T>
  bool holds(T value) const {
    using Number = std::conditional_t<std::is_same_v<T, float>, float, double>;
    const auto number = static_cast<Number>(value), from = static_cast<Number>(low), to = static_cast<Number>(high);
    return std::isfinite(number) && (without_low ? number > from : number >= from) &&
           (without_high ? number < to : number <= to);
  }
};

// The shortest digits that read back as the same number.
template <class T>
std::string shortest(T value) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

// " >= 1", " > 0", " in [0, 1)", or nothing for any number.
inline std::string to_string(const Range& range) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  if (low && high) {
    return (range.without_low ? " in (" : " in [") + shortest(range.low) + ", " + shortest(range.high) +
           (range.without_high ? ")" : "]");
  }
  if (low) return (range.without_low ? " > " : " >= ") + shortest(range.low);
  if (high) return (range.without_high ? " < " : " <= ") + shortest(range.high);
  return "";
}

template <class E>
struct EnumName {
  std::string_view name;
  E value;
};

// Marks a field that is read from old files, and neither written nor shown.
struct Legacy {};

struct FieldInfo {
  std::string path;  // "attention.heads": the names of the structs around it, and its own
  std::string_view name, help;
  Range range = {};
  bool legacy = false;
};

// An enum as a visitor sees it.
struct Choice {
  std::vector<std::string_view> names;
  size_t chosen;
};

// What looks at the fields of any option struct, in their order, and may set them.
class HEED_API FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(const FieldInfo& info, int64_t& value) = 0;
  virtual void field(const FieldInfo& info, float& value) = 0;
  virtual void field(const FieldInfo& info, double& value) = 0;
  virtual void field(const FieldInfo& info, bool& value) = 0;
  virtual void field(const FieldInfo& info, std::string& value) = 0;
  virtual void field(const FieldInfo& info, Choice& value) = 0;
  virtual void begin_struct(const FieldInfo& info) = 0;  // its fields follow
  virtual void end_struct() = 0;
  virtual bool takes_legacy() const { return false; }
};

namespace describe_detail {

struct AnyField {
  template <class T>
  void operator()(std::string_view, T&, std::string_view, Range = {}) const {}
  template <class T>
  void operator()(std::string_view, T&, std::string_view, Legacy) const {}
};

template <class E>
size_t position_of(E value, const FieldInfo& info) {
  constexpr auto kNames = enum_names(E{});
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].value == value) return i;
  }
  throw Error(info.path + " is " + std::to_string(static_cast<int64_t>(value)) + ", expected a value with a name");
}

}  // namespace describe_detail

template <class T>
concept Described = requires(T& options) {
  T::describe(options, describe_detail::AnyField{});
};

template <Described T>
void visit_fields(T& options, FieldVisitor& visitor, const std::string& prefix = "");

namespace describe_detail {

// What describe() is called with: shows each field to the visitor.
struct Shower {
  FieldVisitor& visitor;
  const std::string& prefix;

  template <class F>
  void operator()(std::string_view name, F& value, std::string_view help, Range range = {}) const {
    show({.path = prefix + std::string(name), .name = name, .help = help, .range = range}, value);
  }
  template <class F>
  void operator()(std::string_view name, F& value, std::string_view help, Legacy) const {
    if (!visitor.takes_legacy()) return;
    show({.path = prefix + std::string(name), .name = name, .help = help, .legacy = true}, value);
  }

 private:
  template <class F>
  void show(const FieldInfo& info, F& value) const {
    if constexpr (Described<F>) {
      visitor.begin_struct(info);
      visit_fields(value, visitor, info.path + ".");
      visitor.end_struct();
    } else if constexpr (std::is_enum_v<F>) {
      constexpr auto kNames = enum_names(F{});
      Choice choice{.names = {}, .chosen = position_of(value, info)};
      for (const EnumName<F>& one : kNames) choice.names.push_back(one.name);
      visitor.field(info, choice);
      value = kNames.at(choice.chosen).value;
    } else {
      visitor.field(info, value);
    }
  }
};

}  // namespace describe_detail

template <Described T>
void visit_fields(T& options, FieldVisitor& visitor, const std::string& prefix) {
  T::describe(options, describe_detail::Shower{visitor, prefix});
}

// Throws if a number is outside its range: "config.json: dropout is 1.5, expected a number in [0, 1)".
template <class T>
void check_range(const std::string& owner, const FieldInfo& info, T value) {
  if (info.range.holds(value)) return;
  throw Error(owner + ": " + info.path + " is " + shortest(value) + ", expected " +
              (std::is_integral_v<T> ? "an integer" : "a number") + to_string(info.range));
}

// The ranges of options that a program has filled in itself.
template <Described T>
void check_fields(const std::string& owner, T options) {
  struct Check final : FieldVisitor {
    explicit Check(const std::string& name) : owner(name) {}
    void field(const FieldInfo& info, int64_t& value) override { check_range(owner, info, value); }
    void field(const FieldInfo& info, float& value) override { check_range(owner, info, value); }
    void field(const FieldInfo& info, double& value) override { check_range(owner, info, value); }
    void field(const FieldInfo&, bool&) override {}
    void field(const FieldInfo&, std::string&) override {}
    void field(const FieldInfo&, Choice&) override {}
    void begin_struct(const FieldInfo&) override {}
    void end_struct() override {}
    const std::string& owner;
  } check(owner);
  visit_fields(options, check);
}

}  // namespace heed
