// SPDX-License-Identifier: Apache-2.0
#include "heed/folder/lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "heed/base/testing.h"
#include "heed/folder/model_folder.h"

namespace heed::folder {
namespace {

using heed::testing::error_of, heed::testing::TemporaryFolder;

TEST(Lock, KeepsASecondOneOutAndSaysWhoHoldsIt) {
  const TemporaryFolder folder;
  std::optional<Lock> first(folder.path());
  const std::string error = error_of([&] { Lock second(folder.path()); });
  EXPECT_TRUE(
      error.starts_with("folder '" + folder.path() + "' is in use by process " + std::to_string(::getpid()) + " on "))
      << error;
  EXPECT_NE(error.find(", since 2"), std::string::npos) << error;
  EXPECT_TRUE(error.ends_with(" UTC: expected one that nobody else writes to")) << error;
  first.reset();
  Lock third(folder.path());
  Lock moved = std::move(third);
  EXPECT_NE(error_of([&] { Lock fourth(folder.path()); }), "no error") << "it is held by what it was moved to";
}

TEST(Lock, OfAFileKeepsASecondOneOutOfThatFileAlone) {
  const TemporaryFolder folder;
  std::string holder = "nobody";
  std::optional<Lock> first = Lock::try_file(folder.file("one"), holder);
  ASSERT_TRUE(first);
  EXPECT_EQ(holder, "nobody");
  EXPECT_FALSE(Lock::try_file(folder.file("one"), holder));
  EXPECT_TRUE(holder.starts_with("process " + std::to_string(::getpid()) + " on ")) << holder;
  EXPECT_TRUE(Lock::try_file(folder.file("two"), holder));
  first.reset();
  EXPECT_TRUE(Lock::try_file(folder.file("one"), holder));
  EXPECT_EQ(folder.count(), 0U);
  EXPECT_EQ(error_of([&] { Lock::try_file(folder.file("no/one"), holder); }),
            folder.file("no/one") + ": cannot open: No such file or directory");
}

TEST(Lock, LeavesNothingBehind) {
  const TemporaryFolder folder;
  { Lock lock(folder.path()); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Lock, NeedsTheFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { Lock lock(folder.file("none")); }),
            Layout(folder.file("none")).lock() + ": cannot open: No such file or directory");
}

TEST(Lock, IsGoneWithAKilledHolder) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Lock lock(folder.path());
    const char done = 1;
    if (::write(ready[1], &done, 1) == 1) ::pause();
    ::_exit(1);
  }
  char done = 0;
  ASSERT_EQ(::read(ready[0], &done, 1), 1);
  EXPECT_NE(error_of([&] { Lock lock(folder.path()); }).find("process " + std::to_string(child) + " on "),
            std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(Layout(folder.path()).lock())) << "the file is left, the lock is not";
  const Lock lock(folder.path());
  ::close(ready[0]), ::close(ready[1]);
}

TEST(Lock, ShowsAForeignFileSafely) {
  const TemporaryFolder folder;
  Lock lock(folder.path());
  std::ofstream(Layout(folder.path()).lock()) << "a\nb\x1b[2J";
  EXPECT_EQ(error_of([&] { Lock second(folder.path()); }),
            "folder '" + folder.path() + "' is in use by a?b?[2J: expected one that nobody else writes to");
}

}  // namespace
}  // namespace heed::folder
