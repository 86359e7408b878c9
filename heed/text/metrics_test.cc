// SPDX-License-Identifier: Apache-2.0
// BLEU and chrF against sacreBLEU's numbers (testdata/metrics.tsv, made by tools/make_metric_table.py), and the metrics
// that are small enough to be checked by hand.
#include "heed/text/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heed/base/file.h"
#include "heed/base/testing.h"
#include "heed/text/bleu.h"
#include "heed/text/chrf.h"

namespace heed::text {
namespace {

using heed::testing::error_of;
using heed::testing::text_of;
using Strings = std::vector<std::string>;

Strings split(const std::string& text, char separator) {
  Strings parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct Case {
  std::vector<double> numbers;  // BLEU, four precisions, brevity penalty, chrF
  Strings hypotheses, references;
};

struct Table {
  std::vector<std::pair<std::string, std::string>> words;
  std::vector<Case> cases;
};

Table read_table() {
  Table table;
  for (const std::string& line : split(text_of(read_file(HEED_TEXT_TESTDATA "/metrics.tsv", 1 << 20)), '\n')) {
    const Strings columns = split(line, '\t');
    if (columns[0] == "words") table.words.emplace_back(columns.at(1), columns.at(2));
    if (columns[0] == "corpus") {
      table.cases.emplace_back();
      for (size_t i = 1; i < columns.size(); ++i) table.cases.back().numbers.push_back(std::stod(columns[i]));
    }
    if (columns[0] == "pair") {
      table.cases.back().hypotheses.push_back(columns.at(1));
      table.cases.back().references.push_back(columns.at(2));
    }
  }
  return table;
}

TEST(Bleu, CutsWordsAs13a) {
  const Table table = read_table();
  ASSERT_GE(table.words.size(), 16u);
  for (const auto& [text, expected] : table.words) {
    EXPECT_EQ(words_13a(text), expected.empty() ? Strings{} : split(expected, ' ')) << text;
  }
}

// Numbers of 0 to 100 from some ten roundings of doubles: 100 * 10 * 2^-53 is 1e-13.
TEST(Metrics, EqualSacreBleu) {
  constexpr double kTolerance = 1e-12;
  const Table table = read_table();
  ASSERT_GE(table.cases.size(), 16u);
  for (const Case& one : table.cases) {
    SCOPED_TRACE(one.hypotheses[0]);
    ASSERT_EQ(one.numbers.size(), 7u);
    const Bleu result = bleu(one.hypotheses, one.references);
    EXPECT_NEAR(result.score, one.numbers[0], kTolerance);
    for (size_t n = 0; n < 4; ++n) EXPECT_NEAR(result.precisions[n], one.numbers[1 + n], kTolerance);
    EXPECT_NEAR(result.brevity_penalty, one.numbers[5], kTolerance);
    EXPECT_NEAR(chrf(one.hypotheses, one.references), one.numbers[6], kTolerance);
  }
}

TEST(Metrics, RefuseWhatCannotBeCompared) {
  const Strings one = {"a"}, two = {"a", "b"}, none, bad = {"a\xFF"};
  EXPECT_EQ(error_of([&] { bleu(one, two); }), "bleu: 1 results and 2 references, expected as many, and at least one");
  EXPECT_EQ(error_of([&] { chrf(two, one); }), "chrf: 2 results and 1 references, expected as many, and at least one");
  EXPECT_EQ(error_of([&] { exact_match(none, none); }),
            "exact match: 0 results and 0 references, expected as many, and at least one");
  const std::string utf8 = "text: byte 2 is 0xff, which is no UTF-8";
  EXPECT_EQ(error_of([&] { bleu(bad, one); }), utf8);
  EXPECT_EQ(error_of([&] { chrf(one, bad); }), utf8);
  EXPECT_EQ(error_of([&] { exact_match(one, bad); }), utf8);
}

TEST(ExactMatch, CountsSentences) {
  const Strings hypotheses = {"a b", " a  b ", "a", "A"}, references = {"a b", "a b", "b", "a"};
  EXPECT_EQ(exact_match(hypotheses, references), 0.5);
}

TEST(Alignment, ReadsPharaoh) {
  EXPECT_EQ(parse_alignment(""), Alignment{});
  EXPECT_EQ(parse_alignment(" 0-0 1-12  6p5\n"), (Alignment{{0, 0, true}, {1, 12, true}, {6, 5, false}}));
  for (const char* bad : {"0", "0-", "-0", "0--1", "a-b", "0-1x", "0q1", "0-1-2", "99999999999999999999-1"}) {
    EXPECT_EQ(error_of([&] { parse_alignment(std::string("0-0 ") + bad); }),
              "alignment: link 2 is no pair of numbers such as 0-2 or 0p2")
        << bad;
  }
}

double error_rate(const std::string& found, const std::string& reference) {
  const std::vector<Alignment> a = {parse_alignment(found)}, s = {parse_alignment(reference)};
  return alignment_error_rate(a, s);
}

TEST(Alignment, ErrorRateIsOchAndNeys) {
  EXPECT_EQ(error_rate("0-0 1-1", "1-1 0-0"), 0);
  EXPECT_EQ(error_rate("0-0 1-1", "0-1 1-0"), 1);
  EXPECT_EQ(error_rate("", "0-0"), 1);
  EXPECT_EQ(error_rate("0-0", ""), 1);
  EXPECT_EQ(error_rate("", ""), 0);
  EXPECT_DOUBLE_EQ(error_rate("0-0 1-1 2-2", "0-0 1-1 3-3"), 1 - 4.0 / 6);  // 1 - (2 + 2) / (3 + 3)
  EXPECT_DOUBLE_EQ(error_rate("0-0 0-0 1-1", "0-0 2-2"), 1 - 2.0 / 4);      // a link counts once
  // What is only possible is no mistake to find, and none to leave out: A = 3, S = 2, A and S = 1, A and P = 2.
  EXPECT_DOUBLE_EQ(error_rate("0-0 1-2 5-5", "0-0 1-1 1p2"), 1 - 3.0 / 5);
  EXPECT_EQ(error_rate("0-0", "0-0 1p1"), 0);
  EXPECT_EQ(error_rate("0-0 1-1", "0-0 1p1"), 0);
}

TEST(Alignment, ErrorRateIsOverAllSentences) {
  const std::vector<Alignment> found = {parse_alignment("0-0"), parse_alignment("0-0 1-1 2-2")};
  const std::vector<Alignment> reference = {parse_alignment("0-1"), parse_alignment("0-0 1-1 2-2")};
  EXPECT_DOUBLE_EQ(alignment_error_rate(found, reference), 1 - 6.0 / 8);
}

}  // namespace
}  // namespace heed::text
