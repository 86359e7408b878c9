// SPDX-License-Identifier: Apache-2.0
#include "heed/page/report.h"

#include <gtest/gtest.h>

#include <limits>

#include "heed/base/file.h"
#include "heed/base/testing.h"
#include "heed/page/shell.h"

namespace heed::page {
namespace {

using heed::testing::error_of, heed::testing::text_of, heed::testing::TemporaryFolder;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What the page's script would find.
std::string data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(Report, IsAPageWithItsNumbersAsJson) {
  const Report report{
      .title = "T",
      .paragraphs = {"one", "two"},
      .verdicts = {{Outcome::confirmed, "it is so"}, {Outcome::refuted, "it is not"}, {Outcome::open, "who knows"}},
      .plots = {{.title = "A",
                 .x = {"step", Scale::log},
                 .y = {"loss", Scale::linear, 0, 1.5},
                 .series = {{"a", {{1, 2.5, 2, 3}, {10, kNan}}}, {"b", {}}},
                 .note = "n"},
                {.title = "B", .series = {{"c", {{1, 4}}}}, .marks = Marks::bars, .categories = {"x", "y"}}},
      .tables = {{"t", {"p", "q"}, {{"1", "2"}}}},
      .footer = "f"};
  EXPECT_EQ(data_of(to_page(report)),
            R"({"format":"heed-report","version":"1.0","title":"T","paragraphs":["one","two"],)"
            R"("verdicts":[{"outcome":"confirmed","text":"it is so"},{"outcome":"refuted","text":"it is not"},)"
            R"({"outcome":"open","text":"who knows"}],)"
            R"("plots":[{"title":"A","marks":"lines","x":{"label":"step","scale":"log"},)"
            R"("y":{"label":"loss","low":0,"high":1.5},"note":"n",)"
            R"("series":[{"name":"a","points":[[1,2.5,2,3],[10,null]]},{"name":"b","points":[]}]},)"
            R"({"title":"B","marks":"bars","x":{"label":""},"y":{"label":""},"categories":["x","y"],)"
            R"("series":[{"name":"c","points":[[1,4]]}]}],)"
            R"("tables":[{"title":"t","columns":["p","q"],"rows":[["1","2"]]}],"footer":"f"})");
}

TEST(Report, LoadsNothingAndKeepsTextAsText) {
  const std::string page = to_page({.title = "</script><script>alert(1)</script>"});
  EXPECT_EQ(page.substr(0, 15), "<!DOCTYPE html>");
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
  EXPECT_EQ(page.find("@HEED_DATA@"), page.npos);
  EXPECT_EQ(data_of(page).find('<'), page.npos);
  EXPECT_NE(data_of(page).find("\\u003c/script>\\u003cscript>alert(1)"), page.npos);
  EXPECT_NE(data_of(to_page({.title = "a\xff"})).find(R"("title":"'a\\xff'")"), page.npos) << "no UTF-8";
}

TEST(Report, IsAFile) {
  const TemporaryFolder folder;
  write(folder.file("report.html"), {.title = "T"});
  EXPECT_EQ(text_of(read_file(folder.file("report.html"), 1 << 20)), to_page({.title = "T"}));
}

TEST(Report, ThatContradictsItselfIsAnError) {
  const auto error = [](Plot plot) {
    plot.title = "P";
    return error_of([&] { to_page({.title = "T", .plots = {plot}}); });
  };
  EXPECT_EQ(error({.series = {{"s", {{kNan, 1}}}}}),
            "page: plot 'P': point 0 of 's' has an x that is not a finite number");
  EXPECT_EQ(error({.series = {{"s", {{0, 1}, {1, 1, 0.5}}}}}),
            "page: plot 'P': point 1 of 's' has one end of a range, expected both or none");
  EXPECT_EQ(error({.series = {{"s", {{0, 1, 3, 2}}}}}),
            "page: plot 'P': point 0 of 's' has the range 3 to 2, expected two finite numbers, the lower one first");
  EXPECT_EQ(error({.series = {{"s", {{2, 1}}}}, .marks = Marks::dots, .categories = {"a", "b"}}),
            "page: plot 'P': point 0 of 's' is at 2, expected the index of one of 2 categories");
  EXPECT_EQ(error({.categories = {"a"}}), "page: plot 'P' has lines and categories, expected bars or dots");
  EXPECT_EQ(error({.y = {"y", Scale::log}, .marks = Marks::bars}),
            "page: plot 'P' has bars on a logarithmic axis, where none begins at 0, expected dots");
  EXPECT_EQ(error_of([] {
              to_page({.title = "T", .tables = {{"t", {"a", "b"}, {{"1"}}}}});
            }),
            "page: table 't' has a row of 1 cells, expected 2");
}

}  // namespace
}  // namespace heed::page
