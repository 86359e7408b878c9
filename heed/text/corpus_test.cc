// SPDX-License-Identifier: Apache-2.0
#include "heed/text/corpus.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "heed/base/testing.h"

namespace heed::text {
namespace {

using heed::testing::error_of;
using heed::testing::TemporaryFolder;

Corpus read(const std::string& file, const TsvOptions& options = {}) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("d.tsv"), std::ios::binary) << file;
  return read_tsv(folder.file("d.tsv"), options);
}

// Without the folder's name.
std::string read_error(const std::string& file, const TsvOptions& options = {}) {
  const std::string error = error_of([&] { read(file, options); });
  const size_t name = error.find("d.tsv");
  return name == error.npos ? error : error.substr(name);
}

TEST(ReadTsv, ReadsPairsWithTheirLines) {
  const Corpus corpus = read("Go.\tVe.\n\n I see. \t Ya veo.\tmore\n");
  ASSERT_EQ(corpus.pairs.size(), 2u);
  EXPECT_EQ(corpus.pairs[0].source, "Go.");
  EXPECT_EQ(corpus.pairs[0].target, "Ve.");
  EXPECT_EQ(corpus.pairs[0].line, 1);
  EXPECT_EQ(corpus.pairs[1].source, "I see.");
  EXPECT_EQ(corpus.pairs[1].target, "Ya veo.");
  EXPECT_EQ(corpus.pairs[1].line, 3);
  EXPECT_EQ(corpus.report.to_string(), "3 lines, 2 kept, 1 empty, 0 too long");
}

TEST(ReadTsv, PassesOverByteOrderMarkAndCarriageReturns) {
  const Corpus corpus = read("\uFEFFGo.\tVe.\r\nRun.\tCorre.\r\n\r\nlast\túltimo");
  ASSERT_EQ(corpus.pairs.size(), 3u);
  EXPECT_EQ(corpus.pairs[0].source, "Go.");
  EXPECT_EQ(corpus.pairs[1].target, "Corre.");
  EXPECT_EQ(corpus.pairs[2].target, "último");
  EXPECT_EQ(corpus.report.empty, 1);
}

TEST(ReadTsv, TakesTheColumnsThatAreAskedFor) {
  const std::string file = "7\tÉL\tHe\n8\tElla\tShe\n";
  const Corpus corpus = read(file, {.source_column = 3, .target_column = 2, .lowercase = true});
  EXPECT_EQ(corpus.pairs[0].source, "he");
  EXPECT_EQ(corpus.pairs[0].target, "él");
  const Corpus target_only = read("One sentence.\n\nAnother.\n", {.source_column = 0, .target_column = 1});
  ASSERT_EQ(target_only.pairs.size(), 2u);
  EXPECT_EQ(target_only.pairs[1].source, "");
  EXPECT_EQ(target_only.pairs[1].target, "Another.");
}

TEST(ReadTsv, SaysWhatItLeftOut) {
  const std::string longer(11, 'x');
  const Corpus corpus =
      read("a\tb\n\tb\na\t \u00A0\n" + longer + "\tb\na\t" + longer + "\na\t0123456789\n", {.max_bytes = 10});
  EXPECT_EQ(corpus.report.to_string(), "6 lines, 2 kept, 2 empty, 2 too long");
  EXPECT_EQ((CorpusReport{.lines = 1234567, .kept = 29000, .empty = 1000, .too_long = 100}.to_string()),
            "1,234,567 lines, 29,000 kept, 1,000 empty, 100 too long");
  EXPECT_EQ((CorpusReport{.lines = 1}.to_string()), "1 line, 0 kept, 0 empty, 0 too long");
}

TEST(ReadTsv, ErrorsNameFileAndLine) {
  EXPECT_EQ(read_error("a\tb\nonly one\n"), "d.tsv:2: has 1 column between tabs, expected at least 2");
  EXPECT_EQ(read_error("a\tb\n", {.source_column = 1, .target_column = 4}),
            "d.tsv:1: has 2 columns between tabs, expected at least 4");
  EXPECT_EQ(read_error("a\tb\na\tse\xF1or\n"), "d.tsv:2: byte 5 is 0xf1, which is no UTF-8");
  EXPECT_EQ(read_error(std::string("a\tb\nc\0\td\n", 9)), "d.tsv:2: has a zero byte, expected text");
  EXPECT_EQ(read_error(""), "d.tsv: nothing is left to use: 0 lines, 0 kept, 0 empty, 0 too long");
  EXPECT_EQ(read_error("\n \n"), "d.tsv: nothing is left to use: 2 lines, 0 kept, 2 empty, 0 too long");
  EXPECT_EQ(error_of([] { read_tsv("/nowhere/d.tsv"); }), "/nowhere/d.tsv: cannot open: No such file or directory");
}

struct TwoFiles : TemporaryFolder {
  TwoFiles(const std::string& source, const std::string& target) {
    std::ofstream(file("d.en"), std::ios::binary) << source;
    std::ofstream(file("d.es"), std::ios::binary) << target;
  }
  Corpus read(const TsvOptions& options = {}) const {
    return read_pairs(ParallelFiles(file("d.en"), file("d.es"), options));
  }
  std::string error() const {
    std::string error = error_of([&] { read(); });
    const std::string before = path() + "/";
    for (size_t at = 0; (at = error.find(before)) != error.npos;) error.erase(at, before.size());
    return error;
  }
};

TEST(ParallelFiles, PairsLineByLine) {
  const Corpus corpus = TwoFiles("Go.\n\nI\tsee. \r\nYes.\n", "\uFEFFVe.\nNada\n Ya veo.\n\n").read();
  ASSERT_EQ(corpus.pairs.size(), 2u);
  EXPECT_EQ(corpus.pairs[0].source, "Go.");
  EXPECT_EQ(corpus.pairs[0].target, "Ve.");
  EXPECT_EQ(corpus.pairs[1].source, "I\tsee.") << "a tab is a space here";
  EXPECT_EQ(corpus.pairs[1].target, "Ya veo.");
  EXPECT_EQ(corpus.pairs[1].line, 3);
  EXPECT_EQ(corpus.report.to_string(), "4 lines, 2 kept, 2 empty, 0 too long");
  EXPECT_EQ(TwoFiles("A\n", "É\n").read({.lowercase = true}).pairs[0].target, "é");
  EXPECT_EQ(TwoFiles("12345\n1\n", "1\n12\n").read({.max_bytes = 4}).report.too_long, 1);
}

TEST(ParallelFiles, ErrorsNameTheFile) {
  EXPECT_EQ(TwoFiles("a\nb\n", "c\n").error(), "d.es: has 1 line, expected 2 as d.en has");
  EXPECT_EQ(TwoFiles("a\n", "b\nc").error(), "d.es: has 2 lines, expected 1 as d.en has");
  EXPECT_EQ(TwoFiles("a\nb\n", "c\n\xFF\n").error(), "d.es:2: byte 1 is 0xff, which is no UTF-8");
  EXPECT_EQ(TwoFiles("a\n\xFF\n", "c\nd\n").error(), "d.en:2: byte 1 is 0xff, which is no UTF-8");
  EXPECT_EQ(TwoFiles("a\n", std::string("\0\n", 2)).error(), "d.es:1: has a zero byte, expected text");
  EXPECT_EQ(TwoFiles("\n", "a\n").error(),
            "d.en and d.es: nothing is left to use: 1 line, 0 kept, 1 empty, 0 too long");
}

TEST(ParallelLines, HasThemByNumber) {
  const heed::testing::TemporaryFolder folder;
  std::ofstream(folder.file("a.align")) << "0-0\n\n1-1";
  const ParallelLines lines(folder.file("a.align"));
  EXPECT_EQ(lines.at(1), "0-0");
  EXPECT_EQ(lines.at(2), "");
  EXPECT_EQ(lines.at(3), "1-1");
  EXPECT_EQ(lines.place(3), folder.file("a.align") + ":3");
  EXPECT_EQ(error_of([&] { lines.at(4); }),
            folder.file("a.align") + ": has 3 lines, expected one for line 4 of the corpus");
}

TEST(ReadTsv, RejectsOptionsThatMeanNothing) {
  EXPECT_EQ(read_error("a\tb\n", {.source_column = -1}), "corpus: source_column is -1, expected at least 0");
  EXPECT_EQ(read_error("a\tb\n", {.target_column = 0}), "corpus: target_column is 0, expected at least 1");
  EXPECT_EQ(read_error("a\tb\n", {.max_bytes = 0}), "corpus: max_bytes is 0, expected at least 1");
}

}  // namespace
}  // namespace heed::text
