// SPDX-License-Identifier: Apache-2.0
#include "heed/io/json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "heed/base/testing.h"

namespace heed::io {
namespace {

using heed::testing::error_of;

// The events as one line of text.
class Recorder final : public JsonEvents {
 public:
  void begin_object() override { text += "{ "; }
  void key(const std::string& name) override { text += name + ": "; }
  void end_object() override { text += "} "; }
  void begin_array() override { text += "[ "; }
  void end_array() override { text += "] "; }
  void value(const JsonScalar& scalar) override { text += shown(scalar) + " "; }
  std::string text;
};

std::string events_of(std::string_view text) {
  Recorder recorder;
  parse_json(text, "x.json", recorder);
  return recorder.text;
}
std::string parse_error(std::string_view text) {
  return error_of([&] { events_of(text); });
}

TEST(Json, TellsWhatItReads) {
  EXPECT_EQ(events_of(R"({"a": [1, -2, 0.5, true, null], "b": {"c": "text\n"}, "d": {}})"),
            "{ a: [ 1 -2 0.5 true null ] b: { c: 'text\\x0a' } d: { } } ");
  EXPECT_EQ(events_of("9223372036854775807"), "9223372036854775807 ");
  EXPECT_EQ(events_of("9223372036854775808"), "9223372036854775808 ") << "a double";
  EXPECT_EQ(events_of("  [1e3]  "), "[ 1000 ] ");
}

TEST(Json, RejectsAKeyThatComesTwiceInOneObject) {
  EXPECT_EQ(parse_error(R"({"a": 1, "b": 2, "a": 3})"), "x.json: key 'a' comes twice");
  EXPECT_EQ(parse_error(R"({"a": 1, "\u0061": 3})"), "x.json: key 'a' comes twice");
  EXPECT_EQ(events_of(R"({"a": {"a": 1}, "b": {"a": 2}})"), "{ a: { a: 1 } b: { a: 2 } } ");
}

TEST(Json, RejectsDeepNesting) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse_error(nested(kMaxJsonDepth)), "no error");
  EXPECT_EQ(parse_error(nested(kMaxJsonDepth + 1)), "x.json: nested more than 32 deep");
  EXPECT_EQ(parse_error(std::string(1'000'000, '[')), "x.json: nested more than 32 deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(parse_error(objects), "x.json: nested more than 32 deep");
}

TEST(Json, SaysWhereTheTextGoesWrong) {
  EXPECT_EQ(parse_error("{\"a\": 1,\n \"b\" 2}"), "x.json: not valid JSON at line 2, column 6");
  EXPECT_EQ(parse_error(""), "x.json: not valid JSON at line 1, column 1");
  EXPECT_EQ(parse_error("{} x"), "x.json: not valid JSON at line 1, column 4");
  EXPECT_EQ(parse_error("[1e999]"), "x.json: not valid JSON at line 1, column 6");
  EXPECT_EQ(parse_error("[NaN]"), "x.json: not valid JSON at line 1, column 2");
  EXPECT_EQ(parse_error("\"\xff\""), "x.json: not valid JSON at line 1, column 2");
  for (const char* text : {"{", "[1,]", "{\"a\"}", "{a: 1}", "'a'", "01", "\"\\x\"", "\"\\ud800\"", "// no", "tru"}) {
    EXPECT_TRUE(parse_error(text).starts_with("x.json: not valid JSON at line 1, column ")) << text;
  }
}

TEST(Json, ShowsLittleOfALongString) {
  const std::string key(10'000, 'a');
  const std::string error = parse_error("{\"" + key + "\": 1, \"" + key + "\": 2}");
  EXPECT_EQ(error, "x.json: key '" + std::string(80, 'a') + "...' comes twice");
}

TEST(Json, WritesStringsThatReadBack) {
  for (const std::string text : {"", "plain", "a \"quote\" \\ \n \t \x01", "gr\xc3\xbc\xc3\x9f"}) {
    EXPECT_EQ(events_of(json_string(text)), shown(text) + " ");
  }
  EXPECT_EQ(error_of([] { json_string("\xff"); }), "text is not UTF-8: '\\xff'");
}

TEST(Json, WritesNumbersShortAndExact) {
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(0.1f), "0.1");
  EXPECT_EQ(json_number(1.0), "1.0");
  EXPECT_EQ(json_number(-0.0), "-0.0");
  EXPECT_EQ(json_number(1e22), "1e+22");
  for (const double value : {1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -1e-9, 123456789.0}) {
    EXPECT_EQ(std::strtod(json_number(value).c_str(), nullptr), value);
    EXPECT_EQ(parse_error(json_number(value)), "no error");
  }
}

}  // namespace
}  // namespace heed::io
