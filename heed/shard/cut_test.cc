// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/cut.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <numeric>

#include "heed/base/testing.h"
#include "heed/shard/sha256.h"

namespace heed::shard {
namespace {

using heed::testing::error_of, heed::testing::TemporaryFolder;

// Files with these texts: "0", "1" ...
std::vector<std::string> files_with(const TemporaryFolder& folder, const std::vector<std::string>& texts) {
  std::vector<std::string> paths;
  for (const std::string& text : texts) {
    paths.push_back(folder.file(std::to_string(paths.size())));
    std::ofstream(paths.back(), std::ios::binary) << text;
  }
  return paths;
}

struct Line {
  std::string text, place;
  bool operator==(const Line&) const = default;
};

// As a command reads them, without shards.
std::vector<Line> all_lines(const std::vector<std::string>& paths) {
  std::vector<Line> lines;
  for (const std::string& path : paths) {
    text::LineReader reader = text::open_lines(path);
    for (std::string line; reader.next(line);) lines.push_back({line, reader.place()});
  }
  return lines;
}

std::vector<Line> lines_of(const Sources& sources, const Piece& piece) {
  std::vector<Line> lines;
  PieceReader reader(sources, piece);
  for (std::string_view line; reader.next(line);) lines.push_back({std::string(line), reader.place()});
  return lines;
}

TEST(Cut, IsByBytesAtTheEndsOfLines) {
  const TemporaryFolder folder;
  const Sources sources(files_with(folder, {"one\ntwo\n", "three\nfour\n"}));  // 4 + 4 + 6 + 5 bytes
  const std::vector<Piece> pieces = cut(sources, 2);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0], (Piece{0, 14, 0, 3, 0, sha256_of("one\ntwo\nthree\n")}));
  EXPECT_EQ(pieces[1], (Piece{14, 5, 3, 1, 1, sha256_of("four\n")}));
  EXPECT_EQ(lines_of(sources, pieces[1]), (std::vector<Line>{{"four", sources.path(1) + ":2"}}));
}

TEST(Cut, LeavesShardsEmptyWhereLinesAreFew) {
  const TemporaryFolder folder;
  const Sources sources(files_with(folder, {"", "a long line\n", ""}));
  const std::vector<Piece> pieces = cut(sources, 3);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].lines, 1);
  for (const size_t i : {1U, 2U}) EXPECT_TRUE(lines_of(sources, pieces[i]).empty()) << i;
  const Sources none(files_with(folder, {""}));
  for (const Piece& piece : cut(none, 2)) EXPECT_EQ(piece, (Piece{0, 0, 0, 0, 0, sha256_of("")}));
}

// A byte order mark, carriage returns, empty files, lines without an end: what a line is does not depend on the shards.
RC_GTEST_PROP(Cut, GivesEveryLineOnceInOrderWithItsPlace, ()) {
  const auto text = rc::gen::map(
      rc::gen::container<std::vector<std::string>>(
          rc::gen::element<std::string>("a", "bc", "\r", "\n", "\n", "\r\n", "\uFEFF", "word ")),
      [](const std::vector<std::string>& parts) { return std::accumulate(parts.begin(), parts.end(), std::string()); });
  const TemporaryFolder folder;
  const auto paths = files_with(folder, *rc::gen::container<std::vector<std::string>>(*rc::gen::inRange(1, 4), text));
  const Sources sources(paths);
  const std::vector<Piece> pieces = cut(sources, *rc::gen::inRange(1, 9));
  std::vector<Line> lines;
  int64_t begin = 0;
  for (const Piece& piece : pieces) {
    RC_ASSERT(piece.begin == begin);
    RC_ASSERT(piece.first_line == std::ssize(lines));
    const std::vector<Line> some = lines_of(sources, piece);
    RC_ASSERT(std::ssize(some) == piece.lines);
    lines.insert(lines.end(), some.begin(), some.end());
    begin += piece.bytes;
    check_unchanged(sources, piece);
  }
  RC_ASSERT(begin == sources.bytes());
  RC_ASSERT(lines == all_lines(paths));
}

TEST(Cut, NoticesATextThatHasChanged) {
  const TemporaryFolder folder;
  const auto paths = files_with(folder, {"one\ntwo\nthree\nfour\n"});
  const std::vector<Piece> pieces = cut(Sources(paths), 2);
  std::ofstream(paths[0]) << "one\ntwo\nthree\nfive\n";
  const Sources changed(paths);
  check_unchanged(changed, pieces[0]);
  EXPECT_EQ(error_of([&] { check_unchanged(changed, pieces[1]); }),
            "lines 4 to 4 of the text are not what they were when it was cut into shards, expected the same text");
}

TEST(Cut, NeedsFilesAndAShard) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([] { Sources sources({"-"}); }),
            "standard input cannot be cut into shards, expected files: whoever works on one reads it");
  EXPECT_EQ(error_of([&] { Sources sources({folder.path()}); }),
            folder.path() + ": is a folder, expected a regular file");
  EXPECT_EQ(error_of([&] { Sources sources({folder.file("none")}); }),
            folder.file("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of([] { cut(Sources({}), 0); }), "the number of shards is 0, expected 1 to 100000");
}

}  // namespace
}  // namespace heed::shard
