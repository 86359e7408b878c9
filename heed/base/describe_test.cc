// SPDX-License-Identifier: Apache-2.0
#include "heed/base/describe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "heed/base/testing.h"

namespace heed {
namespace {

using testing::error_of;

enum class Norm { pre, post };
constexpr auto enum_names(Norm) { return std::to_array<EnumName<Norm>>({{"pre", Norm::pre}, {"post", Norm::post}}); }

struct AttentionOptions {
  int64_t heads = 8;
  float dropout = 0.1f;

  static void describe(AttentionOptions& o, auto&& field) {
    field("heads", o.heads, "attention heads", Range::at_least(1));
    field("dropout", o.dropout, "share of weights that is dropped", Range::from_below(0, 1));
  }
};

struct ModelOptions {
  AttentionOptions attention = {};
  double rate = 1e-3;
  bool tied = true;
  std::string title = "model";
  Norm norm = Norm::post;

  static void describe(ModelOptions& o, auto&& field) {
    field("attention", o.attention, "each attention layer");
    field("rate", o.rate, "learning rate", Range::above(0));
    field("tied", o.tied, "input and output embeddings are one");
    field("title", o.title, "what the model card is headed with");
    field("norm", o.norm, "where the normalisation stands");
  }
};

static_assert(Described<ModelOptions> && !Described<int64_t> && !Described<Norm>);

// A line for each field, as --help prints it. The defaults are those of a fresh struct.
class Help final : public FieldVisitor {
 public:
  void field(const FieldInfo& info, int64_t& value) override { line(info, "integer", shortest(value)); }
  void field(const FieldInfo& info, float& value) override { line(info, "number", shortest(value)); }
  void field(const FieldInfo& info, double& value) override { line(info, "number", shortest(value)); }
  void field(const FieldInfo& info, bool& value) override { line(info, "yes or no", value ? "yes" : "no"); }
  void field(const FieldInfo& info, std::string& value) override { line(info, "text", value); }
  void field(const FieldInfo& info, Choice& value) override {
    std::string names;
    for (const std::string_view name : value.names) names.append(names.empty() ? "" : "|").append(name);
    line(info, names, std::string(value.names[value.chosen]));
  }
  void begin_struct(const FieldInfo& info) override { text += std::string(info.help) + ":\n"; }
  void end_struct() override { text += "\n"; }
  std::string text;

 private:
  void line(const FieldInfo& info, const std::string& kind, const std::string& standard) {
    text += "--" + info.path + " <" + kind + to_string(info.range) + ">: " + std::string(info.help) + " [" + standard +
            "]\n";
  }
};

// Sets fields from flags by their paths.
class Flags final : public FieldVisitor {
 public:
  explicit Flags(const std::map<std::string, std::string>& given) : given_(given) {}
  void field(const FieldInfo& info, int64_t& value) override { number(info, value); }
  void field(const FieldInfo& info, float& value) override { number(info, value); }
  void field(const FieldInfo& info, double& value) override { number(info, value); }
  void field(const FieldInfo& info, bool& value) override {
    if (const std::string* text = find(info)) value = *text == "yes";
  }
  void field(const FieldInfo& info, std::string& value) override {
    if (const std::string* text = find(info)) value = *text;
  }
  void field(const FieldInfo& info, Choice& value) override {
    const std::string* text = find(info);
    for (size_t i = 0; text && i < value.names.size(); ++i) {
      if (value.names[i] == *text) value.chosen = i;
    }
  }
  void begin_struct(const FieldInfo&) override {}
  void end_struct() override {}

 private:
  const std::string* find(const FieldInfo& info) const {
    const auto found = given_.find("--" + info.path);
    return found == given_.end() ? nullptr : &found->second;
  }
  template <class T>
  void number(const FieldInfo& info, T& value) {
    const std::string* text = find(info);
    if (!text) return;
    std::from_chars(text->data(), text->data() + text->size(), value);
    check_range("flags", info, value);
  }
  const std::map<std::string, std::string>& given_;
};

TEST(Describe, HelpComesFromTheList) {
  ModelOptions options;
  Help help;
  visit_fields(options, help);
  EXPECT_EQ(help.text,
            "each attention layer:\n"
            "--attention.heads <integer >= 1>: attention heads [8]\n"
            "--attention.dropout <number in [0, 1)>: share of weights that is dropped [0.1]\n"
            "\n"
            "--rate <number > 0>: learning rate [0.001]\n"
            "--tied <yes or no>: input and output embeddings are one [yes]\n"
            "--title <text>: what the model card is headed with [model]\n"
            "--norm <pre|post>: where the normalisation stands [post]\n");
}

TEST(Describe, FlagsSetTheFieldsTheyName) {
  ModelOptions options;
  const std::map<std::string, std::string> given = {
      {"--attention.heads", "4"}, {"--rate", "0.5"}, {"--tied", "no"}, {"--title", "mine"}, {"--norm", "pre"}};
  Flags flags(given);
  visit_fields(options, flags);
  EXPECT_EQ(options.attention.heads, 4);
  EXPECT_EQ(options.attention.dropout, 0.1f) << "not given";
  EXPECT_EQ(options.rate, 0.5);
  EXPECT_FALSE(options.tied);
  EXPECT_EQ(options.title, "mine");
  EXPECT_EQ(options.norm, Norm::pre);

  const std::map<std::string, std::string> wrong = {{"--attention.heads", "0"}};
  Flags refused(wrong);
  EXPECT_EQ(error_of([&] { visit_fields(options, refused); }), "flags: attention.heads is 0, expected an integer >= 1");
}

struct Renamed {
  Norm norm = Norm::post;

  static void describe(Renamed& o, auto&& field) {
    bool pre = o.norm == Norm::pre;
    field("pre_norm", pre, "as it was before", Legacy{});
    o.norm = pre ? Norm::pre : Norm::post;
    field("norm", o.norm, "where the normalisation stands");
  }
};

TEST(Describe, ALegacyFieldIsSeenByThoseWhoTakeIt) {
  static_assert(Described<Renamed>);
  Renamed options;
  Help help;
  visit_fields(options, help);
  EXPECT_EQ(help.text, "--norm <pre|post>: where the normalisation stands [post]\n");
  const std::map<std::string, std::string> given = {{"--pre_norm", "yes"}};
  Flags flags(given);
  visit_fields(options, flags);
  EXPECT_EQ(options.norm, Norm::post);
}

TEST(Describe, ChecksOptionsThatAProgramFilledIn) {
  EXPECT_EQ(error_of([] { check_fields("Model", ModelOptions{}); }), "no error");
  EXPECT_EQ(error_of([] { check_fields("Model", ModelOptions{.attention = {.dropout = 1}}); }),
            "Model: attention.dropout is 1, expected a number in [0, 1)");
  EXPECT_EQ(error_of([] { check_fields("Model", ModelOptions{.rate = std::nan("")}); }),
            "Model: rate is nan, expected a number > 0");
  EXPECT_EQ(error_of([] { check_fields("Model", ModelOptions{.norm = static_cast<Norm>(7)}); }),
            "norm is 7, expected a value with a name");
}

TEST(Range, HoldsItsEndsOrNot) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Range::at_least(1).holds(1) && !Range::at_least(1).holds(0.999));
  EXPECT_TRUE(!Range::above(0).holds(0) && Range::above(0).holds(5e-324));
  EXPECT_TRUE(Range::within(0, 1).holds(0) && Range::within(0, 1).holds(1) && !Range::within(0, 1).holds(1.001));
  EXPECT_TRUE(Range::from_below(0, 1).holds(0) && !Range::from_below(0, 1).holds(1));
  EXPECT_TRUE(Range::within(0, 0.1).holds(0.1f)) << "which is more than 0.1";
  for (const Range& range : {Range{}, Range::at_least(0), Range::above(0)}) {
    EXPECT_FALSE(range.holds(kInfinity) || range.holds(-kInfinity) || range.holds(std::nan("")));
  }
}

TEST(Range, IsWrittenAsMessagesNeedIt) {
  EXPECT_EQ(to_string(Range{}), "");
  EXPECT_EQ(to_string(Range::at_least(1)), " >= 1");
  EXPECT_EQ(to_string(Range::above(0.5)), " > 0.5");
  EXPECT_EQ(to_string(Range::within(-1, 1)), " in [-1, 1]");
  EXPECT_EQ(to_string(Range::from_below(0, 1)), " in [0, 1)");
  EXPECT_EQ(to_string(Range{.low = 0, .high = 1, .without_low = true}), " in (0, 1]");
  EXPECT_EQ(to_string(Range{.high = 3}), " <= 3");
  EXPECT_EQ(to_string(Range{.high = 3, .without_high = true}), " < 3");
}

}  // namespace
}  // namespace heed
