// SPDX-License-Identifier: Apache-2.0
#include "heed/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "heed/base/testing.h"

namespace heed {
namespace {

using testing::bytes_of;
using testing::error_of;
using testing::TemporaryFolder;
using testing::text_of;

constexpr uint64_t kMany = 1 << 20;

std::string pattern(size_t size) {
  std::string text(size, ' ');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 131 >> 3);
  return text;
}

// Writes fail past this size, as they do on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(File, WhatIsWrittenIsReadAndMapped) {
  const TemporaryFolder folder;
  for (size_t size : {0, 1, 4096, 65535, 65536, 65537, 300'000}) {
    const std::string text = pattern(size);
    write_file_atomically(folder.file("a"), bytes_of(text));
    EXPECT_EQ(text_of(read_file(folder.file("a"), kMany)), text);
    EXPECT_EQ(text_of(MappedFile(folder.file("a")).bytes()), text);
    EXPECT_EQ(folder.count(), 1u) << "the temporary file is gone";
  }
}

TEST(File, ReadsUpToTheLimitAndNotBeyond) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_file_atomically(path, bytes_of("12345"));
  EXPECT_EQ(text_of(read_file(path, 5)), "12345");
  EXPECT_EQ(error_of([&] { read_file(path, 4); }), path + ": has at least 5 bytes, expected at most 4");
  write_file_atomically(path, {});
  EXPECT_EQ(read_file(path, 0).size(), 0u);
}

// Its size is not known before it ends.
TEST(File, ReadsADeviceUpToTheLimit) {
  EXPECT_EQ(read_file("/dev/null", 10).size(), 0u);
  EXPECT_TRUE(error_of([] { read_file("/dev/zero", 100'000); }).starts_with("/dev/zero: has at least 1"));
}

TEST(File, ErrorsNameThePathAndTheReason) {
  const TemporaryFolder folder;
  const std::string none = folder.file("none"), inside = folder.file("none/a");
  EXPECT_EQ(error_of([&] { read_file(none, kMany); }), none + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of([&] { MappedFile mapped(none); }), none + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of([&] { MappedFile mapped(folder.path()); }),
            folder.path() + ": is a folder, expected a regular file");
  EXPECT_EQ(error_of([&] { read_file(folder.path(), kMany); }), folder.path() + ": cannot read: Is a directory");
  EXPECT_EQ(error_of([&] { write_file_atomically(inside, {}); }),
            inside + ": cannot create: No such file or directory");
}

TEST(File, APipeIsNoRegularFileAndIsNotWaitedFor) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { check_regular(pipe); }), pipe + ": is a pipe, expected a regular file");
  EXPECT_EQ(error_of([&] { MappedFile mapped(pipe); }), pipe + ": is a pipe, expected a regular file");
  EXPECT_EQ(error_of([&] { check_regular(folder.path()); }), folder.path() + ": is a folder, expected a regular file");
  EXPECT_EQ(error_of([&] { check_regular("/dev/null"); }), "/dev/null: is no regular file, expected a regular file");
  EXPECT_EQ(error_of([&] { check_regular(folder.file("none")); }), "no error");
}

TEST(ReadableFile, EndsToWaitForAPipeWhenItIsToldTo) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  int waited = 0;
  const auto three_times = [&] {
    if (++waited == 3) throw Error("no longer");
  };
  EXPECT_EQ(error_of([&] { ReadableFile file(pipe, three_times); }), "no longer") << "without a writer";
  const int writer = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  waited = 0;
  EXPECT_EQ(error_of([&] { ReadableFile file(pipe, three_times); }), "no longer") << "with one that writes nothing";
  ::close(writer);
}

// The writer comes later, and is slow.
TEST(ReadableFile, ReadsAPipeToItsEnd) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe"), text(300'000, 'x');
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const bool watched : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::usleep(250'000);
      const int out = ::open(pipe.c_str(), O_WRONLY);
      bool good = ::write(out, "first ", 6) == 6;
      ::usleep(250'000);
      for (size_t at = 0; good && at < text.size(); at += 1000) good = ::write(out, text.data() + at, 1000) == 1000;
      ::_exit(good ? 0 : 1);
    }
    int waited = 0;
    const ReadableFile file(pipe, watched ? std::function<void()>([&] { ++waited; }) : nullptr);
    EXPECT_EQ(text_of(file.bytes()), "first " + text);
    EXPECT_EQ(waited > 0, watched);
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(SpillFile, GivesBackWhatWasAppended) {
  SpillFile file;
  std::vector<std::byte> all;
  for (int i = 0; i < 1000; ++i) {
    const std::byte bytes[] = {static_cast<std::byte>(i), static_cast<std::byte>(i >> 8), std::byte{7}};
    file.append(bytes);
    all.insert(all.end(), std::begin(bytes), std::end(bytes));
  }
  const auto mapped = file.map();
  EXPECT_TRUE(std::equal(mapped.begin(), mapped.end(), all.begin(), all.end()));
  EXPECT_TRUE(SpillFile().map().empty());
}

TEST(MappedFile, WhatIsForgottenIsReadAnew) {
  const TemporaryFolder folder;
  const std::string text = pattern(100'000);
  write_file_atomically(folder.file("a"), bytes_of(text));
  const MappedFile file(folder.file("a"));
  ASSERT_EQ(text_of(file.bytes()), text);
  for (const auto& [begin, count] :
       {std::pair<size_t, size_t>{0, 100'000}, {1, 4095}, {5000, 90'000}, {99'999, 1}, {7, 0}}) {
    file.forget(file.bytes().subspan(begin, count));
    EXPECT_EQ(text_of(file.bytes()), text) << begin << ", " << count;
  }
}

TEST(MappedFile, MovesAndOutlivesItsName) {
  const TemporaryFolder folder;
  write_file_atomically(folder.file("a"), bytes_of("first"));
  write_file_atomically(folder.file("b"), bytes_of("second"));
  MappedFile a(folder.file("a")), b(folder.file("b"));
  write_file_atomically(folder.file("a"), bytes_of("third, over the name"));
  EXPECT_EQ(text_of(a.bytes()), "first");
  b = std::move(a);
  EXPECT_EQ(text_of(b.bytes()), "first");
  const MappedFile c(std::move(b));
  EXPECT_EQ(text_of(c.bytes()), "first");
  EXPECT_TRUE(b.bytes().empty());  // NOLINT(bugprone-use-after-move): that is what is tested
}

TEST(AtomicFile, KeepsTheOldFileUntilCommit) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_file_atomically(path, bytes_of("old"));
  {
    AtomicFile file(path);
    file.append(bytes_of("new"));
    EXPECT_EQ(text_of(read_file(path, kMany)), "old");
  }
  EXPECT_EQ(text_of(read_file(path, kMany)), "old") << "given up without commit";
  EXPECT_EQ(folder.count(), 1u);
  AtomicFile file(path);
  file.append(bytes_of("ne"));
  file.append(bytes_of("w"));
  file.commit();
  EXPECT_EQ(text_of(read_file(path, kMany)), "new");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, TwoWritersDoNotMix) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  AtomicFile first(path), second(path);
  first.append(bytes_of("first"));
  second.append(bytes_of("second"));
  second.commit();
  EXPECT_EQ(text_of(read_file(path, kMany)), "second");
  first.commit();
  EXPECT_EQ(text_of(read_file(path, kMany)), "first");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, AFailedWriteLeavesTheOldFileAndNoOther) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_file_atomically(path, bytes_of("old"));
  {
    const FileSizeLimit limit(1000);
    EXPECT_EQ(error_of([&] { write_file_atomically(path, bytes_of(pattern(5000))); }),
              path + ": cannot write: File too large");
  }
  EXPECT_EQ(text_of(read_file(path, kMany)), "old");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, AFailedRenameLeavesNothingBehind) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  ASSERT_EQ(::mkdir(path.c_str(), 0777), 0);
  EXPECT_EQ(error_of([&] { write_file_atomically(path, {}); }), path + ": cannot rename to: Is a directory");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(ReadableFile, APipeCanBeReadMoreThanOnce) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe"), text(300'000, 'x');
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t writer = ::fork();
  ASSERT_GE(writer, 0);
  if (writer == 0) {
    const int to = ::open(pipe.c_str(), O_WRONLY);
    const bool whole = ::write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(whole ? 0 : 1);
  }
  const ReadableFile file(pipe);
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of(file.bytes()), text);
  EXPECT_EQ(text_of(file.bytes()), text) << "again";
  EXPECT_EQ(file.path(), pipe);

  write_file_atomically(folder.file("a"), bytes_of("as it is"));
  EXPECT_EQ(text_of(ReadableFile(folder.file("a")).bytes()), "as it is");
  EXPECT_EQ(error_of([&] { ReadableFile(folder.path()); }), folder.path() + ": cannot read: Is a directory");
  EXPECT_EQ(error_of([&] { ReadableFile(folder.file("b")); }),
            folder.file("b") + ": cannot open: No such file or directory");
}

TEST(AtomicFile, HasTheModeOfAnOrdinaryFile) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_file_atomically(folder.file("a"), {});
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(folder.file("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST(AtomicFile, WritesIntoTheWorkingFolder) {
  const TemporaryFolder folder;
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file_atomically("a", bytes_of("here"));
  std::filesystem::current_path(before);
  EXPECT_EQ(text_of(read_file(folder.file("a"), kMany)), "here");
}

}  // namespace
}  // namespace heed
