// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/page.h"

#include <gtest/gtest.h>

#include "heed/base/file.h"
#include "heed/base/testing.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {
namespace {

using heed::testing::error_of, heed::testing::text_of, heed::testing::TemporaryFolder;

Trace trace_of(const std::string& text) {
  Trace t;
  t.tool = "by hand";
  t.model = {.kind = "transformer", .task = "tag", .layers = 1, .heads = 1, .kv_heads = 1, .width = 2, .head_width = 2};
  t.sequences = {{.id = "source", .role = SequenceRole::source, .text = text}};
  t.sequences[0].tokens = {{.id = 4, .piece = text, .text = text, .start = 0, .end = std::ssize(text), .word = 0}};
  t.output.seq = "source";
  return t;
}

// What the page's script would find.
std::string traces_in(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

std::string unescaped(std::string text) {
  for (size_t at = 0; (at = text.find("\\u003c", at)) != text.npos; ++at) text.replace(at, 6, "<");
  return text;
}

TEST(Page, HasTheTracesAndNothingElseChanges) {
  const std::vector<Trace> one = {trace_of("a")}, two = {trace_of("a"), trace_of("b")};
  EXPECT_EQ(unescaped(traces_in(to_page(one))), "[" + to_json(one[0]) + "]");
  EXPECT_EQ(unescaped(traces_in(to_page(two))), "[" + to_json(two[0]) + ",\n" + to_json(two[1]) + "]");
  EXPECT_EQ(to_page(one).find("@HEED_DATA@"), std::string::npos);
  EXPECT_EQ(to_page(one).substr(0, 15), "<!DOCTYPE html>");
}

TEST(Page, TextOfAUserCannotEndTheScript) {
  const std::string hostile = "</script><script>alert(1)</script><!--";
  const std::vector<Trace> traces = {trace_of(hostile)};
  const std::string inside = traces_in(to_page(traces));
  EXPECT_EQ(inside.find('<'), std::string::npos);
  EXPECT_EQ(unescaped(inside), "[" + to_json(traces[0]) + "]");
}

TEST(Page, IsAFile) {
  const TemporaryFolder folder;
  const std::vector<Trace> traces = {trace_of("a")};
  save_page(folder.file("page.html"), traces);
  EXPECT_EQ(text_of(read_file(folder.file("page.html"), 1 << 20)), to_page(traces));
}

TEST(Page, OfNoTraceIsAnError) {
  EXPECT_EQ(error_of([] { to_page({}); }), "page: there are 0 traces, expected at least one");
}

}  // namespace
}  // namespace heed::trace
