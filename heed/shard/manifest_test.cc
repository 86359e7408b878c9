// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/manifest.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/shard/record.h"

namespace heed::shard {
namespace {

using heed::testing::error_of;

Manifest example() {
  return {.version = "1.0",
          .command = "translate",
          .model = "abc",
          .options = {{"--beam", "4"}, {"--json", ""}},
          .part_lines = 10,
          .inputs = {{"a.txt", 7}, {"b.txt", 3}},
          .shards = {{0, 6, 0, 2, 0, "x"}, {6, 4, 2, 1, 2, "y"}}};
}

// With one piece of its JSON replaced.
std::string error_with(const std::string& from, const std::string& to) {
  std::string text = to_json(example());
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from << " in " << text;
  text.replace(at, from.size(), to);
  return error_of([&] { manifest_from_json(text, "m"); });
}

TEST(Manifest, ReadsWhatItHasWritten) { EXPECT_EQ(manifest_from_json(to_json(example()), "m"), example()); }

TEST(Manifest, ChecksWhatAFileClaims) {
  EXPECT_EQ(error_with("{", ""), "m: is no JSON, expected an object of heed");
  EXPECT_EQ(error_with("\"format\": 1", "\"format\": 2"), "m: 'format' is 2, expected an integer from 1 to 1");
  EXPECT_EQ(error_with("\"model\"", "\"modle\""), "m: 'model' is missing, expected it");
  EXPECT_EQ(error_with("\"abc\"", "3"), "m: 'model' is no text, expected one");
  EXPECT_EQ(error_with("\"part_lines\": 10", "\"part_lines\": 0"),
            "m: 'part_lines' is 0, expected an integer from 1 to 1073741824");
  EXPECT_EQ(error_with("\"bytes\": 7", "\"bytes\": 1e300"),
            "m: inputs: 'bytes' is 1e+300, expected an integer from 0 to 9223372036854775807");
  EXPECT_EQ(error_with("\"bytes\": 7", "\"bytes\": 18446744073709551615"),
            "m: inputs: 'bytes' is 18446744073709551615, expected an integer from 0 to 9223372036854775807");
  EXPECT_EQ(error_with("\"bytes\": 7", "\"bytes\": 9223372036854775807"),
            "m: its files have more bytes than can be counted");
  EXPECT_EQ(error_with("\"bytes\": 7", "\"bytes\": 8"), "m: its shards have 10 bytes, expected 11 as its files");
  EXPECT_EQ(error_with("\"begin\": 6", "\"begin\": 5"),
            "m: its shards are not contiguous, expected each to begin where the last one ends");
  EXPECT_EQ(error_with("\"lines\": 1", "\"lines\": 5"),
            "m: its shards are not contiguous, expected each to begin where the last one ends");
}

TEST(Manifest, IsShownOnOneShortLine) {
  EXPECT_EQ(error_with("\"bytes\": 7", "\"bytes\": \"" + std::string(5000, 'x') + "\""),
            "m: inputs: 'bytes' is no number, expected an integer from 0 to 9223372036854775807");
  Manifest begun = example();
  begun.command = "a\nb" + std::string(5000, 'x');
  const std::string error = error_of([&] { check_same_run(begun, example(), "out"); });
  EXPECT_TRUE(error.starts_with("folder 'out' was begun with the command 'a\\x0a")) << error;
  EXPECT_LT(error.size(), 250U);
}

TEST(Manifest, HasAShard) {
  Manifest none = example();
  none.shards.clear();
  EXPECT_EQ(error_of([&] { manifest_from_json(to_json(none), "m"); }), "m: has 0 shards, expected 1 to 100,000");
}

TEST(Record, ReadsWhatItHasWritten) {
  const Record record{.run = "r",
                      .shard = 3,
                      .part = 0,
                      .lines = 9,
                      .bytes = 70,
                      .sha256 = "s",
                      .skipped = 2,
                      .first_error = "a:1: no"};
  EXPECT_EQ(record_from_json(to_json(record), "r"), record);
  Record wrong = record;
  wrong.skipped = 10;
  EXPECT_EQ(error_of([&] { record_from_json(to_json(wrong), "r"); }),
            "r: 'skipped' is 10, expected an integer from 0 to 9");
}

}  // namespace
}  // namespace heed::shard
