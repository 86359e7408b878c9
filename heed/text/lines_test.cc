// SPDX-License-Identifier: Apache-2.0
#include "heed/text/lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "heed/base/testing.h"

namespace heed::text {
namespace {

using heed::testing::error_of;
using heed::testing::TemporaryFolder;
using Strings = std::vector<std::string>;

std::string gzipped(std::string_view text) {
  z_stream z{};
  deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

class LinesOf : public TemporaryFolder {
 public:
  explicit LinesOf(const std::string& bytes) { std::ofstream(path_of(), std::ios::binary) << bytes; }
  std::string path_of() const { return file("t.txt"); }

  Strings read() const {
    LineReader reader = open_lines(path_of());
    Strings lines;
    for (std::string line; reader.next(line);) lines.push_back(line);
    return lines;
  }
  std::string whole() const { return std::string(TextFile(path_of()).text()); }
  // Without the folder's name; the same from both ways to read.
  std::string error() const {
    const std::string by_line = error_of([&] { read(); }), at_once = error_of([&] { whole(); });
    EXPECT_EQ(by_line, at_once);
    const size_t name = by_line.find("t.txt");
    return name == by_line.npos ? by_line : by_line.substr(name);
  }
};

// Longer than any buffer of the reader, and compressible far beyond it.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += "line " + std::to_string(i * 7919 % 100003) + " of a long text\n";
  return text;
}

TEST(OpenLines, GivesLinesWithoutTheirEnds) {
  EXPECT_EQ(LinesOf("one\ntwo\r\n\nlast").read(), (Strings{"one", "two", "", "last"}));
  EXPECT_EQ(LinesOf("\uFEFFone\n").read(), (Strings{"one"}));
  EXPECT_EQ(LinesOf("\uFEFF").read(), Strings{});
  EXPECT_EQ(LinesOf("").read(), Strings{});
  EXPECT_EQ(LinesOf("\n").read(), Strings{""});
}

TEST(OpenLines, SaysWhereALineStands) {
  const LinesOf file("one\ntwo\nthree\n");
  LineReader reader = open_lines(file.path_of());
  EXPECT_EQ(reader.next(size_t{2}), (Strings{"one", "two"}));
  EXPECT_EQ(reader.place(1), file.path_of() + ":2");
  std::string line;
  EXPECT_TRUE(reader.next(line));
  EXPECT_EQ(reader.place(), file.path_of() + ":3");
  EXPECT_FALSE(reader.next(line));
  EXPECT_EQ(reader.next(size_t{2}), Strings{});
}

TEST(OpenLines, UnpacksGzip) {
  EXPECT_EQ(LinesOf(gzipped("one\ntwo\n")).read(), (Strings{"one", "two"}));
  EXPECT_EQ(LinesOf(gzipped("\uFEFFone\n")).read(), (Strings{"one"}));
  EXPECT_EQ(LinesOf(gzipped("")).read(), Strings{});
  const std::string text = long_text();
  EXPECT_EQ(LinesOf(gzipped(text)).read(), LinesOf(text).read());
  EXPECT_EQ(LinesOf(gzipped(text)).whole(), text);
  // What `cat a.gz b.gz` and pigz give, and what tapes add.
  EXPECT_EQ(LinesOf(gzipped("one\ntw") + gzipped("o\n")).whole(), "one\ntwo\n");
  EXPECT_EQ(LinesOf(gzipped("one\n") + std::string(512, '\0')).read(), Strings{"one"});
}

TEST(OpenLines, GzipThatIsDamagedOrCutShortIsAnError) {
  const std::string packed = gzipped(long_text());
  EXPECT_EQ(LinesOf(packed.substr(0, packed.size() - 1)).error(), "t.txt: the gzip data is cut short");
  EXPECT_EQ(LinesOf(packed.substr(0, packed.size() / 2)).error(), "t.txt: the gzip data is cut short");
  EXPECT_EQ(LinesOf(packed.substr(0, 2)).error(), "t.txt: the gzip data is cut short");
  EXPECT_EQ(LinesOf(gzipped("one\n") + packed.substr(0, 100)).error(), "t.txt: the gzip data is cut short");
  EXPECT_EQ(LinesOf(gzipped("one\n") + "two\n").error(), "t.txt: other bytes follow the gzip data");
  std::string changed = packed;
  changed[changed.size() - 8] ^= 1;  // of its check sum
  EXPECT_EQ(LinesOf(changed).error(), "t.txt: the gzip data is damaged: incorrect data check");
  EXPECT_EQ(LinesOf("\x1F\x8B\x07 and no gzip").error(), "t.txt: the gzip data is damaged: unknown compression method");
}

// Any one byte that changes is seen, and none is a crash.
TEST(OpenLines, AnyChangedByteOfGzipIsSeenOrHarmless) {
  const std::string text = "El gato duerme.\nThe cat sleeps.\n", packed = gzipped(text);
  constexpr size_t kHeader = 10;  // time and system, which say nothing about the text
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string changed = packed;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    const LinesOf file(changed);
    if (i >= kHeader) {
      EXPECT_NE(file.error(), "no error") << "byte " << i;
    } else if (error_of([&] { file.whole(); }) == "no error" && i >= 2) {
      EXPECT_EQ(file.whole(), text) << "byte " << i;
    }
  }
}

TEST(OpenLines, ReadsStandardInputByEitherName) {
  std::array<int, 2> ends{};
  for (const char* name : {"-", "/dev/stdin"}) {
    for (const bool whole : {false, true}) {
      ASSERT_EQ(::pipe(ends.data()), 0);
      const std::string packed = gzipped("one\ntwo\n");
      ASSERT_EQ(::write(ends[1], packed.data(), packed.size()), std::ssize(packed));
      ::close(ends[1]);
      const int before = ::dup(STDIN_FILENO);
      ::dup2(ends[0], STDIN_FILENO);
      ::close(ends[0]);
      if (whole) {
        const TextFile file(name);
        EXPECT_EQ(file.text(), "one\ntwo\n");
        EXPECT_EQ(file.name(), "standard input");
      } else {
        LineReader reader = open_lines(name);
        EXPECT_EQ(reader.next(size_t{9}), (Strings{"one", "two"}));
        EXPECT_EQ(reader.place(1), "standard input:2");
      }
      ::dup2(before, STDIN_FILENO);
      ::close(before);
    }
  }
}

// A pipe that gives a byte at a time: a line is there as soon as it is whole, and the kind of file is still seen.
TEST(OpenLines, TakesWhatIsThereAndWaitsForNoMore) {
  const TemporaryFolder folder;
  const std::string path = folder.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::FILE* const writer = std::fopen(path.c_str(), "r+");  // opens without a reader
  ASSERT_NE(writer, nullptr);
  std::setbuf(writer, nullptr);
  LineReader reader = open_lines(path);
  std::fputs("one\ntw", writer);
  EXPECT_EQ(reader.next(size_t{9}), Strings{"one"});
  std::fputs("o\nthree\n", writer);
  EXPECT_EQ(reader.next(size_t{9}), (Strings{"two", "three"}));
  std::fclose(writer);
}

TEST(OpenLines, WhatCannotBeOpenedIsNamed) {
  EXPECT_EQ(error_of([] { open_lines("/nowhere/t.txt"); }), "/nowhere/t.txt: cannot open: No such file or directory");
  EXPECT_EQ(error_of([] { TextFile("/nowhere/t.txt"); }), "/nowhere/t.txt: cannot open: No such file or directory");
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { open_lines(folder.path()).next(size_t{1}); }),
            folder.path() + ": cannot read: Is a directory");
  EXPECT_EQ(error_of([&] { TextFile{folder.path()}; }), folder.path() + ": cannot read: Is a directory");
}

TEST(TakeLine, TakesOneAfterTheOther) {
  std::string_view text = "one\r\n\nlast", line;
  Strings lines;
  while (take_line(text, line)) lines.emplace_back(line);
  EXPECT_EQ(lines, (Strings{"one", "", "last"}));
}

}  // namespace
}  // namespace heed::text
