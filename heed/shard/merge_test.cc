// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/merge.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heed/base/testing.h"
#include "heed/shard/layout.h"
#include "heed/shard/run.h"
#include "heed/shard/testing.h"

namespace heed::shard {
namespace {

using heed::testing::error_of, heed::testing::TemporaryFolder;
using testing::text_of_file, testing::write_text;

class MergeOfThree : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_.file("text"), "one\ntwo bad\nthree\nfour\nfive bad\nsix\n");
    const shard::Run run({.folder = folder_.file("out"), .inputs = {folder_.file("text")}, .shards = 3});
    for (const int64_t shard : {3, 1, 2}) run.work(shard, testing::number_lines);
  }
  std::string error() const {
    return error_of([&] { merge_to(Merge(folder_.file("out")), folder_.file("merged")); });
  }

  TemporaryFolder folder_;
  Layout layout_{folder_.file("out")};
};

TEST_F(MergeOfThree, IsOneText) {
  const Merge merge(folder_.file("out"));
  EXPECT_EQ(merge.shards(), 3);
  EXPECT_EQ(merge.lines(), 6);
  EXPECT_EQ(merge.skipped(), 2);
  EXPECT_EQ(merge.first_error(), folder_.file("text") + ":2: is bad");
  merge_to(merge, folder_.file("merged"));
  const std::string merged = text_of_file(folder_.file("merged"));
  EXPECT_EQ(merged, "0 text:1 one\n\n2 text:3 three\n3 text:4 four\n\n5 text:6 six\n");
  EXPECT_EQ(merge.bytes(), std::ssize(merged));
}

TEST_F(MergeOfThree, NamesTheShardsThatAreNotDone) {
  std::filesystem::remove(layout_.record(2, 3));
  EXPECT_EQ(error(), "folder '" + folder_.file("out") + "': 1 of 3 shards is not done, expected all: 2");
  std::filesystem::remove(layout_.record(3, 3));
  EXPECT_EQ(error(), "folder '" + folder_.file("out") + "': 2 of 3 shards are not done, expected all: 2, 3");
}

TEST_F(MergeOfThree, WritesNothingWhereAShardIsBroken) {
  std::string bytes = text_of_file(layout_.output(2, 3));
  bytes[0] = '?';
  write_text(layout_.output(2, 3), bytes);
  const std::string message = error();
  EXPECT_TRUE(message.starts_with(layout_.output(2, 3) + ": is not what was written, expected ")) << message;
  EXPECT_TRUE(message.ends_with(": work on shard 2 again")) << message;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("merged")));
  write_text(layout_.output(2, 3), "");
  EXPECT_EQ(error(), message);
  std::filesystem::remove(layout_.output(2, 3));
  EXPECT_EQ(error(), layout_.output(2, 3) + ": cannot open: No such file or directory");
}

TEST_F(MergeOfThree, TakesNoShardOfAnotherRun) {
  write_text(layout_.manifest(), text_of_file(layout_.manifest()) + " ");
  EXPECT_EQ(error(), layout_.record(1, 3) + ": is of another run, expected the one of " + layout_.manifest());
}

TEST(Merge, NeedsARun) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { Merge merge(folder.path()); }),
            "folder '" + folder.path() + "' has no manifest.json, expected the output of a run over shards");
}

}  // namespace
}  // namespace heed::shard
