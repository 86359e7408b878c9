// SPDX-License-Identifier: Apache-2.0
// A folder has one run at a time, and a run that waits for a pipe can be stopped.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "heed/base/cancel.h"
#include "heed/folder/lock.h"
#include "heed/folder/model_folder.h"
#include "heed/train/run.h"
#include "heed/train/testing.h"

namespace heed::train {
namespace {

namespace fs = std::filesystem;
using heed::testing::error_of;
using testing::Files, testing::with_steps;

// What a second run into the folder says while the first is at its first step.
struct SecondRun final : Listener {
  SecondRun(const Files& own, std::string to) : files(own), folder(std::move(to)) {}
  void stepped(const Progress&) override {
    if (!error.empty()) return;
    Parallel parallel(1);
    Listener quiet;
    error = error_of([&] { run(files.options(), folder, quiet, parallel); });
    resume_error = error_of([&] { resume(folder, with_steps(folder, 20), quiet, parallel); });
  }
  const Files& files;
  const std::string folder;
  std::string error, resume_error;
};

TEST(OneWriter, ASecondRunIntoAFolderIsToldWhoIsThere) {
  const Files files;
  Parallel parallel(1);
  SecondRun listener(files, files.out("m"));
  EXPECT_EQ(run(files.options(), files.out("m"), listener, parallel).steps, 8);
  const std::string expected = "folder '" + files.out("m") + "' is in use by process " + std::to_string(::getpid());
  EXPECT_TRUE(listener.error.starts_with(expected)) << listener.error;
  EXPECT_TRUE(listener.resume_error.starts_with(expected)) << listener.resume_error;
  EXPECT_FALSE(fs::exists(folder::Layout(files.out("m")).lock())) << "the run is over";
  listener.error.clear();
  EXPECT_EQ(resume(files.out("m"), with_steps(files.out("m"), 12), listener, parallel).steps, 12);
  EXPECT_TRUE(listener.error.starts_with(expected)) << listener.error;
}

// Another run was quicker: its model is not overwritten.
TEST(OneWriter, WhoComesLateFindsTheRunOfTheOther) {
  const Files files;
  Parallel parallel(1);
  struct Overtaken final : Listener {
    Overtaken(const Files& own, Parallel& threads) : files(own), parallel(threads) {}
    void told(const std::string&) override {  // the data has been read, the folder is not yet made
      if (fs::exists(files.out("m"))) return;
      Listener quiet;
      run(files.options(), files.out("m"), quiet, parallel);
    }
    const Files& files;
    Parallel& parallel;
  } listener(files, parallel);
  EXPECT_EQ(error_of([&] { run(files.options(), files.out("m"), listener, parallel); }),
            "folder '" + files.out("m") + "' holds a run already: expected a new one, or to resume it");
  folder::open(files.out("m"));
}

TEST(OneWriter, IsStoppedWhileItWaitsForAPipe) {
  const Files files;
  Parallel parallel(1);
  struct Stopped final : Listener {
    bool stop() override { return true; }
  } listener;
  ASSERT_EQ(::mkfifo(files.out("pipe").c_str(), 0600), 0);
  RunOptions o = files.options();
  o.data = files.out("pipe");
  EXPECT_THROW(run(o, files.out("m"), listener, parallel), Cancelled);
  o = files.options(), o.dev = files.out("pipe");
  EXPECT_THROW(run(o, files.out("m"), listener, parallel), Cancelled);
}

}  // namespace
}  // namespace heed::train
