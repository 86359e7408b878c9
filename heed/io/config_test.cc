// SPDX-License-Identifier: Apache-2.0
#include "heed/io/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "heed/base/file.h"
#include "heed/base/testing.h"

namespace heed::io {
namespace {

using heed::testing::bytes_of;
using heed::testing::error_of;
using heed::testing::TemporaryFolder;

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

struct Nothing {
  static void describe(Nothing&, auto&&) {}
};

struct ModelOptions {
  int64_t layers = 6;
  AttentionOptions attention = {};
  double rate = 1e-3;
  bool tied = true;
  std::string title = "a \"model\"";
  Norm norm = Norm::post;

  static void describe(ModelOptions& o, auto&& field) {
    field("layers", o.layers, "encoder layers");
    field("attention", o.attention, "each attention layer");
    field("rate", o.rate, "learning rate", Range::above(0));
    field("tied", o.tied, "input and output embeddings are one");
    field("title", o.title, "what the model card is headed with");
    field("norm", o.norm, "where the normalisation stands");
  }
};

// What was a flag has become a choice.
struct Renamed {
  Norm norm = Norm::post;

  static void describe(Renamed& o, auto&& field) {
    bool pre = o.norm == Norm::pre;
    field("pre_norm", pre, "as files from before have it", Legacy{});
    o.norm = pre ? Norm::pre : Norm::post;
    field("norm", o.norm, "where the normalisation stands");
  }
};

ModelOptions read(std::string_view text) {
  ModelOptions options;
  from_json(text, options, "config.json");
  return options;
}
std::string read_error(std::string_view text) {
  return error_of([&] { read(text); });
}

TEST(Config, IsWrittenInTheOrderOfTheList) {
  EXPECT_EQ(to_json(ModelOptions{}), R"({
  "layers": 6,
  "attention": {
    "heads": 8,
    "dropout": 0.1
  },
  "rate": 0.001,
  "tied": true,
  "title": "a \"model\"",
  "norm": "post"
}
)");
  EXPECT_EQ(to_json(Nothing{}), "{}\n");
}

TEST(Config, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  const std::string path = folder.file("config.json");
  const ModelOptions options{.layers = std::numeric_limits<int64_t>::min(),
                             .attention = {.heads = std::numeric_limits<int64_t>::max(), .dropout = 1.0f / 3},
                             .rate = 5e-324,
                             .tied = false,
                             .title = "gr\xc3\xbc\xc3\x9f \\ \n",
                             .norm = Norm::pre};
  write_config(path, options);
  ModelOptions again;
  read_config(path, again);
  EXPECT_EQ(to_json(again), to_json(options));
  EXPECT_EQ(again.layers, options.layers);
  EXPECT_EQ(again.attention.heads, options.attention.heads);
  EXPECT_EQ(again.attention.dropout, options.attention.dropout);
  EXPECT_EQ(again.rate, options.rate);
  EXPECT_EQ(again.tied, options.tied);
  EXPECT_EQ(again.title, options.title);
  EXPECT_EQ(again.norm, options.norm);
}

TEST(Config, FieldsThatAreLeftOutKeepTheirValues) {
  EXPECT_EQ(to_json(read("{}")), to_json(ModelOptions{}));
  const ModelOptions options = read(R"({"norm": "pre", "attention": {"dropout": 0}})");
  EXPECT_EQ(options.norm, Norm::pre);
  EXPECT_EQ(options.attention.dropout, 0);
  EXPECT_EQ(options.attention.heads, 8);
  EXPECT_EQ(options.layers, 6);
}

TEST(Config, AnIntegerServesAsANumber) { EXPECT_EQ(read(R"({"rate": 2})").rate, 2.0); }

TEST(Config, RejectsUnknownKeysAndSaysWhatIsNear) {
  EXPECT_EQ(read_error(R"({"layer": 3})"), "config.json: unknown key 'layer', did you mean 'layers'?");
  EXPECT_EQ(read_error(R"({"attention": {"dropuot": 0}})"),
            "config.json: unknown key 'attention.dropuot', did you mean 'attention.dropout'?");
  EXPECT_EQ(read_error(R"({"attention": {"vocabulary": 0}})"),
            "config.json: unknown key 'attention.vocabulary', expected one of heads, dropout");
  EXPECT_EQ(read_error(R"({"attention.heads": 4})").substr(0, 42), "config.json: unknown key 'attention.heads'");
  EXPECT_EQ(read_error(R"({"vocabulary": [{"layers": 1}]})"),
            "config.json: unknown key 'vocabulary', expected one of layers, attention, rate, tied, title, norm");
}

TEST(Config, ALegacyFieldIsReadAndNeitherWrittenNorSuggested) {
  Renamed options;
  from_json(R"({"pre_norm": true})", options, "config.json");
  EXPECT_EQ(options.norm, Norm::pre);
  EXPECT_EQ(to_json(options), "{\n  \"norm\": \"pre\"\n}\n");
  from_json(R"({"norm": "post", "pre_norm": true})", options, "config.json");
  EXPECT_EQ(options.norm, Norm::post) << "the field that is there now counts";
  EXPECT_EQ(error_of([&] { from_json(R"({"pre_norm": 1})", options, "config.json"); }),
            "config.json: pre_norm is 1, expected true or false");
  EXPECT_EQ(error_of([&] { from_json(R"({"pre_nrom": true})", options, "config.json"); }),
            "config.json: unknown key 'pre_nrom', expected one of norm");
}

TEST(Config, RejectsValuesOfAnotherKind) {
  EXPECT_EQ(read_error(R"({"layers": "6"})"), "config.json: layers is '6', expected an integer");
  EXPECT_EQ(read_error(R"({"layers": 6.0})"), "config.json: layers is 6, expected an integer");
  EXPECT_EQ(read_error(R"({"layers": 9223372036854775808})"),
            "config.json: layers is 9223372036854775808, expected an integer");
  EXPECT_EQ(read_error(R"({"attention": {"heads": null}})"),
            "config.json: attention.heads is null, expected an integer >= 1");
  EXPECT_EQ(read_error(R"({"attention": 3})"), "config.json: attention is 3, expected an object");
  EXPECT_EQ(read_error(R"({"attention": []})"), "config.json: attention is an array, expected an object");
  EXPECT_EQ(read_error(R"({"attention": {"dropout": true}})"),
            "config.json: attention.dropout is true, expected a number in [0, 1)");
  EXPECT_EQ(read_error(R"({"rate": {}})"), "config.json: rate is an object, expected a number > 0");
  EXPECT_EQ(read_error(R"({"tied": 1})"), "config.json: tied is 1, expected true or false");
  EXPECT_EQ(read_error(R"({"title": ["a", {"b": [1]}]})"), "config.json: title is an array, expected a string");
  EXPECT_EQ(read_error(R"({"norm": "middle"})"), "config.json: norm is 'middle', expected one of 'pre', 'post'");
  EXPECT_EQ(read_error(R"({"norm": 0})"), "config.json: norm is 0, expected one of 'pre', 'post'");
  EXPECT_EQ(read_error("[]"), "config.json: is an array, expected an object");
  EXPECT_EQ(read_error("3"), "config.json: is 3, expected an object");
}

TEST(Config, RejectsNumbersOutsideTheirRange) {
  EXPECT_EQ(read_error(R"({"attention": {"heads": 0}})"),
            "config.json: attention.heads is 0, expected an integer >= 1");
  EXPECT_EQ(read_error(R"({"attention": {"dropout": 1}})"),
            "config.json: attention.dropout is 1, expected a number in [0, 1)");
  // It rounds to 1 in 32 bits.
  EXPECT_EQ(read_error(R"({"attention": {"dropout": 0.999999999999}})"),
            "config.json: attention.dropout is 1, expected a number in [0, 1)");
  EXPECT_EQ(read_error(R"({"attention": {"dropout": 1e300}})"),
            "config.json: attention.dropout is 1e+300, expected a number that fits into 32 bits");
  EXPECT_EQ(read_error(R"({"rate": 0})"), "config.json: rate is 0, expected a number > 0");
}

TEST(Config, RejectsTextThatIsBroken) {
  EXPECT_EQ(read_error(R"({"layers": 1, "layers": 2})"), "config.json: key 'layers' comes twice");
  EXPECT_EQ(read_error(""), "config.json: not valid JSON at line 1, column 1");
  EXPECT_EQ(read_error("{\n  \"layers\": 1,\n}"), "config.json: not valid JSON at line 3, column 1");
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "{\"attention\":";
  EXPECT_EQ(read_error(deep), "config.json: nested more than 32 deep");
  EXPECT_EQ(read_error(std::string(kMaxConfigBytes + 1, ' ')),
            "config.json: has 1048577 bytes, expected at most 1048576");
}

TEST(Config, LeavesTheOptionsAsTheyWereOnError) {
  ModelOptions options;
  EXPECT_EQ(error_of([&] { from_json(R"({"layers": 3, "rate": "fast"})", options, "config.json"); }),
            "config.json: rate is 'fast', expected a number > 0");
  EXPECT_EQ(options.layers, 6);
}

TEST(Config, RejectsToWriteWhatJsonCannotHold) {
  EXPECT_EQ(error_of([] { to_json(ModelOptions{.rate = std::nan("")}); }),
            "to_json: rate is nan, expected a finite number");
  EXPECT_EQ(error_of([] { to_json(ModelOptions{.title = "\xff"}); }), "text is not UTF-8: '\\xff'");
}

TEST(Config, AFileThatIsMissingOrHugeIsNamed) {
  const TemporaryFolder folder;
  ModelOptions options;
  EXPECT_EQ(error_of([&] { read_config("no/config.json", options); }),
            "no/config.json: cannot open: No such file or directory");
  const std::string path = folder.file("huge.json");
  write_file_atomically(path, bytes_of(std::string(kMaxConfigBytes + 1, ' ')));
  EXPECT_EQ(error_of([&] { read_config(path, options); }),
            path + ": has at least 1048577 bytes, expected at most 1048576");
}

}  // namespace
}  // namespace heed::io
