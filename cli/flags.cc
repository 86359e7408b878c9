// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "cli/action.h"

namespace heed::cli {
namespace {

// The last name of a path, as a flag: "train.weight_decay" is --weight-decay. A tokenizer's kind needs its owner.
std::string flag_of(const FieldInfo& info) {
  std::string flag = info.path == "tokenizer.kind" ? "tokenizer" : std::string(info.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return "--" + flag;
}

// What a flag's help says of its values.
class Adder final : public FieldVisitor {
 public:
  Adder(CLI::App& app, std::map<std::string, std::string>& values) : app_(app), values_(values) {}
  void field(const FieldInfo& info, int64_t& value) override {
    add_filled(info, "N" + to_string(info.range), shortest(value));
  }
  void field(const FieldInfo& info, float& value) override {
    add_filled(info, "X" + to_string(info.range), shortest(value));
  }
  void field(const FieldInfo& info, double& value) override {
    add_filled(info, "X" + to_string(info.range), shortest(value));
  }
  // --sample, or --sample=false.
  void field(const FieldInfo& info, bool& value) override {
    const std::string flag = flag_of(info);
    app_.add_flag(flag, values_[flag], std::string(info.help))->default_str(value ? "true" : "false");
  }
  void field(const FieldInfo& info, std::string& value) override { add(info, "TEXT", value); }
  void field(const FieldInfo& info, Choice& value) override {
    std::string names;
    for (std::string_view name : value.names) names += (names.empty() ? "" : "|") + std::string(name);
    add_filled(info, names, std::string(value.names[value.chosen]));
  }
  void begin_struct(const FieldInfo&) override {}
  void end_struct() override {}

 private:
  CLI::Option* add(const FieldInfo& info, const std::string& type, const std::string& usual) {
    const std::string flag = flag_of(info);
    return app_.add_option(flag, values_[flag], std::string(info.help))->type_name(type)->default_str(usual);
  }
  // Not with an empty value, as an unset variable of the shell gives: it would be the default without a word.
  void add_filled(const FieldInfo& info, const std::string& type, const std::string& usual) {
    const auto check = [type](const std::string& text) { return text.empty() ? "is empty, expected " + type : ""; };
    add(info, type, usual)->check(CLI::Validator(check, ""));
  }
  CLI::App& app_;
  std::map<std::string, std::string>& values_;
};

class Setter final : public FieldVisitor {
 public:
  explicit Setter(const std::map<std::string, std::string>& values) : values_(values) {}
  void field(const FieldInfo& info, int64_t& value) override { number(info, value, "an integer"); }
  void field(const FieldInfo& info, float& value) override { number(info, value, "a number"); }
  void field(const FieldInfo& info, double& value) override { number(info, value, "a number"); }
  void field(const FieldInfo& info, bool& value) override {
    const std::string& text = given(info);
    if (text.empty()) return;
    if (text != "true" && text != "false") refuse(info, text, "true or false");
    value = text == "true";
  }
  void field(const FieldInfo& info, std::string& value) override {
    if (!given(info).empty()) value = given(info);
  }
  void field(const FieldInfo& info, Choice& value) override {
    const std::string& text = given(info);
    if (text.empty()) return;
    const auto found = std::find(value.names.begin(), value.names.end(), text);
    std::string names;
    for (std::string_view name : value.names) names += (names.empty() ? "" : ", ") + std::string(name);
    if (found == value.names.end()) refuse(info, text, "one of: " + names);
    value.chosen = static_cast<size_t>(found - value.names.begin());
  }
  void begin_struct(const FieldInfo&) override {}
  void end_struct() override {}

 private:
  const std::string& given(const FieldInfo& info) const {
    static const std::string kNone;
    const auto found = values_.find(flag_of(info));
    return found == values_.end() ? kNone : found->second;
  }
  [[noreturn]] static void refuse(const FieldInfo& info, const std::string& text, const std::string& expected) {
    throw UsageError("heed: " + flag_of(info) + " is '" + text + "', expected " + expected);
  }
  template <class T>
  void number(const FieldInfo& info, T& value, const char* what) const {
    const std::string& text = given(info);
    if (text.empty()) return;
    T parsed{};
    const auto result = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size() || !info.range.holds(parsed)) {
      refuse(info, text, what + to_string(info.range));
    }
    value = parsed;
  }
  const std::map<std::string, std::string>& values_;
};

}  // namespace

void add_threads(CLI::App& app, int& threads) {
  const auto check = [](const std::string& text) -> std::string {
    int n = 0;
    if (CLI::detail::lexical_cast(text, n) && n >= 0) return "";
    return "'" + text + "' is not a number of threads, expected 0 (all) or more";
  };
  app.add_option("--threads", threads, "Threads to use; 0: all that the machine has")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Validator(check, ""));
}

void Flags::add(CLI::App& app, const io::ShowFields& fields) {
  Adder adder(app, values_);
  fields(adder);
}

std::vector<std::string> Flags::given() const {
  std::vector<std::string> flags;
  for (const auto& [flag, value] : values_) {
    if (!value.empty()) flags.push_back(flag);
  }
  return flags;
}

bool Flags::has(const std::string& flag) const {
  const auto found = values_.find(flag);
  return found != values_.end() && !found->second.empty();
}

void Flags::apply(const io::ShowFields& fields) const {
  Setter setter(values_);
  fields(setter);
}

}  // namespace heed::cli
