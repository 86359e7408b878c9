// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/run.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "heed/base/testing.h"
#include "heed/shard/layout.h"
#include "heed/shard/merge.h"
#include "heed/shard/testing.h"

namespace heed::shard {
namespace {

using heed::testing::error_of, heed::testing::TemporaryFolder;
using testing::numbered_lines, testing::text_of_file, testing::Worker, testing::write_text;

// A folder with a corpus, and the options of a run over it.
struct Example {
  explicit Example(const std::string& text) : options{.folder = folder.file("out"), .inputs = {folder.file("text")}} {
    write_text(options.inputs[0], text);
    options.version = "1.0", options.command = "copy", options.model = "a model";
  }
  std::string merged() const {
    merge_to(Merge(options.folder), folder.file("merged"));
    return text_of_file(folder.file("merged"));
  }

  const TemporaryFolder folder;
  RunOptions options;
};

std::string expected(const std::string& text) {
  Example whole(text);
  Worker worker;
  shard::Run(whole.options).work(1, worker.work());
  return whole.merged();
}

// Few cases: each file is synced to disk, twice with its folder.
TEST(Run, MergesToTheSameTextWhateverTheShardsAndTheirOrder) {
  const std::string text = numbered_lines(12), whole = expected(text);
  for (const auto& [shards, part_lines] : {std::pair(1, 1), {2, 100}, {3, 2}, {5, 1}, {14, 3}}) {
    Example example(text);
    example.options.shards = shards;
    example.options.part_lines = part_lines;
    Worker worker;
    for (int64_t shard = shards; shard >= 1; --shard) shard::Run(example.options).work(shard, worker.work());
    EXPECT_EQ(example.merged(), whole) << shards << " shards";
  }
  EXPECT_EQ(expected(""), "");
}

TEST(Run, SaysWhatBecameOfAShard) {
  Example example("one\ntwo is bad\nthree\n");
  example.options.part_lines = 2;
  Worker worker;
  const shard::Run run(example.options);
  EXPECT_FALSE(run.is_recorded(1));
  const Report made = run.work(1, worker.work());
  EXPECT_FALSE(made.was_done);
  EXPECT_TRUE(run.is_recorded(1));
  EXPECT_EQ(made.record.lines, 3);
  EXPECT_EQ(made.record.skipped, 1);
  EXPECT_EQ(made.record.first_error, example.options.inputs[0] + ":2: is bad");
  EXPECT_EQ(text_of_file(Layout(example.options.folder).output(1, 1)), "0 text:1 one\n\n2 text:3 three\n");
  const Report again = run.work(1, worker.work());
  EXPECT_TRUE(again.was_done);
  EXPECT_EQ(again.record, made.record);
  EXPECT_EQ(worker.calls, 2);
}

TEST(Run, LeavesOutputsAndRecordsAlone) {
  Example example(numbered_lines(20));
  example.options.shards = 2;
  Worker worker;
  for (const int64_t shard : {1, 2}) shard::Run(example.options).work(shard, worker.work());
  const std::filesystem::directory_iterator files(example.options.folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 5) << "two of each shard, and the manifest";
}

TEST(Run, GoesOnAfterThePartsThatWereFinished) {
  const std::string text = numbered_lines(51);
  Example example(text);
  example.options.part_lines = 5;
  int64_t calls = 0;
  for (int64_t most = 0; most < 5; ++most) {  // 0, 1, 2, 3 and 4 parts
    Worker worker{.most = most};
    EXPECT_EQ(error_of([&] { shard::Run(example.options).work(1, worker.work()); }), "killed");
    calls += worker.calls;
  }
  EXPECT_EQ(calls, 10);
  Worker worker;
  const Report report = shard::Run(example.options).work(1, worker.work());
  EXPECT_EQ(report.found_parts, 10);
  EXPECT_EQ(worker.calls, 1);
  EXPECT_EQ(example.merged(), expected(text));
}

// A process that ends at any system call: here, at any part, by SIGKILL, with its lock held.
TEST(Run, IsTakenOverFromAKilledProcess) {
  const std::string text = numbered_lines(30);
  Example example(text);
  example.options.part_lines = 3;
  const shard::Run run(example.options);
  for (int killed_at = 0; killed_at < 3; ++killed_at) {
    const pid_t child = ::fork();
    if (child == 0) {
      int call = 0;
      run.work(1, [&](const Part& part) {
        if (call++ == killed_at) ::kill(::getpid(), SIGKILL);
        return testing::number_lines(part);
      });
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  Worker worker;
  EXPECT_EQ(run.work(1, worker.work()).found_parts, 3) << "0, 1 and 2 of them were finished";
  EXPECT_EQ(example.merged(), expected(text));
}

TEST(Run, KeepsASecondProcessOutOfAShard) {
  Example example(numbered_lines(10));
  example.options.shards = 2;
  const shard::Run run(example.options);
  std::string error, holder;
  Worker other;
  run.work(1, [&](const Part& part) {
    error = error_of([&] { run.work(1, other.work()); });
    EXPECT_FALSE(run.try_work(1, other.work(), holder));
    EXPECT_TRUE(run.try_work(2, other.work(), holder));
    return testing::number_lines(part);
  });
  const std::string begin = "shard 1 of folder '" + example.options.folder + "' is in use by process ";
  EXPECT_TRUE(error.starts_with(begin)) << error;
  EXPECT_TRUE(error.ends_with(": expected one that nobody else works on")) << error;
  EXPECT_TRUE(holder.starts_with("process " + std::to_string(::getpid()) + " on ")) << holder;
}

TEST(Run, MakesBrokenPartsAgain) {
  const std::string text = numbered_lines(20);
  Example example(text);
  example.options.part_lines = 5;
  Worker killed{.most = 3};
  EXPECT_EQ(error_of([&] { shard::Run(example.options).work(1, killed.work()); }), "killed");
  const Layout layout(example.options.folder);
  const std::string first = layout.part(1, 1, 1), second = layout.part(1, 1, 2);
  std::string bytes = text_of_file(first);
  bytes.back() = '?';
  write_text(first, bytes);
  write_text(second, text_of_file(second).substr(0, 20));
  write_text(first + ".tmp.1.0", "half a");
  Worker worker;
  const Report report = shard::Run(example.options).work(1, worker.work());
  EXPECT_EQ(report.broken_parts, 2);
  EXPECT_EQ(report.found_parts, 1);
  EXPECT_EQ(worker.calls, 3);
  EXPECT_EQ(example.merged(), expected(text));
}

TEST(Run, MakesABrokenShardAgain) {
  const std::string text = numbered_lines(20);
  Example example(text);
  Worker worker;
  const shard::Run run(example.options);
  const Layout layout(example.options.folder);
  run.work(1, worker.work());
  const std::string record = text_of_file(layout.record(1, 1)), output = text_of_file(layout.output(1, 1));
  const auto break_it = [&](int way) {
    if (way == 0) write_text(layout.output(1, 1), output.substr(1));
    if (way == 1) write_text(layout.output(1, 1), "?" + output.substr(1));
    if (way == 2) write_text(layout.record(1, 1), record.substr(0, 30));
    if (way == 3) write_text(layout.record(1, 1), "[]");
    if (way == 4) std::filesystem::remove(layout.output(1, 1));
    if (way == 5) std::filesystem::remove(layout.record(1, 1));
  };
  for (int way = 0; way < 6; ++way) {
    break_it(way);
    EXPECT_NE(error_of([&] { example.merged(); }), "no error") << way;
    EXPECT_FALSE(run.work(1, worker.work()).was_done) << way;
    EXPECT_EQ(example.merged(), expected(text)) << way;
  }
}

TEST(Run, GoesOnOnlyWithTheSame) {
  Example example("one\ntwo\n");
  example.options.options = {{"beam", "4"}, {"json", ""}};
  const shard::Run begun(example.options);
  const auto error_with = [&](auto&& change) {
    RunOptions other = example.options;
    change(other);
    const std::string error = error_of([&] { shard::Run run(other); });
    const std::string begin = "folder '" + example.options.folder + "' was begun ";
    EXPECT_TRUE(error.starts_with(begin)) << error;
    return error.substr(std::min(begin.size(), error.size()));
  };
  const std::string end = ": expected the same, or another folder";
  EXPECT_EQ(error_with([](RunOptions& o) { o.version = "1.1"; }), "with heed 1.0, now it is 1.1" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.command = "tag"; }), "with the command copy, now it is tag" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.model = "b"; }), "with the model a model, now it is b" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.options[0].second = "5"; }), "with beam 4, now it is 5" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.options.pop_back(); }), "with json, now it is without json" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.options.emplace_back("scores", ""); }),
            "without scores, now it is with scores" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.part_lines = 7; }), "with parts of 1,000 lines, now it is 7" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.shards = 2; }), "with 1 shard, now it is 2" + end);
  EXPECT_EQ(error_with([](RunOptions& o) { o.inputs.push_back(o.inputs[0]); }), "over 1 file, now it is 2" + end);
  write_text(example.folder.file("more"), "one\ntwo\nthree\n");
  EXPECT_EQ(
      error_with([&](RunOptions& o) { o.inputs = {example.folder.file("more")}; }),
      "over '" + example.options.inputs[0] + "' of 8 bytes, now '" + example.folder.file("more") + "' has 14" + end);
  write_text(example.options.inputs[0], "one\nsix\n");
  Worker worker;
  EXPECT_EQ(error_of([&] { shard::Run(example.options).work(1, worker.work()); }),
            "lines 1 to 2 of the text are not what they were when it was cut into shards, expected the same text");
}

TEST(Run, ChecksItsOptions) {
  Example example("one\n");
  const auto error_with = [&](auto&& change) {
    RunOptions other = example.options;
    change(other);
    return error_of([&] { shard::Run run(other); });
  };
  EXPECT_EQ(error_with([](RunOptions& o) { o.inputs.clear(); }),
            "shards: there are no files, expected the text to be cut");
  EXPECT_EQ(error_with([](RunOptions& o) { o.shards = 0; }), "the number of shards is 0, expected 1 to 100000");
  EXPECT_EQ(error_with([](RunOptions& o) { o.part_lines = 0; }), "a part has 0 lines, expected 1 to 1073741824");
  EXPECT_FALSE(std::filesystem::exists(example.options.folder));
  Worker worker;
  EXPECT_EQ(error_of([&] { shard::Run(example.options).work(2, worker.work()); }), "shard is 2, expected 1 to 1");
}

}  // namespace
}  // namespace heed::shard
