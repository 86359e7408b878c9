// SPDX-License-Identifier: Apache-2.0
#pragma once
// A report as a page: text, verdicts, plots with the numbers that they are drawn from, tables. One HTML file that opens
// from the file system, in light and dark, and loads nothing; its plots are saved as SVG, PNG and CSV from the browser.
//
//   page::Report report{.title = "Steps until the task is solved", .paragraphs = {"Five seeds of each."}};
//   report.plots.push_back({.title = "Accuracy", .x = {"step"}, .y = {"accuracy", page::Scale::linear, 0, 1},
//                           .series = {{"attention", {{100, 0.71, 0.66, 0.75}, {200, 0.93, 0.91, 0.95}}}}});
//   page::write("report.html", report);
//
// Not here: how it looks (web/src/plot), and traces (heed/trace/page.h).
#include <optional>
#include <string>
#include <vector>

#include "heed/base/export.h"

namespace heed::page {

enum class Scale { linear, log };

struct Axis {
  std::string label = {};
  Scale scale = Scale::linear;
  std::optional<double> low = {}, high = {};  // the axis reaches at least that far
};

// low to high is the range around y: a standard deviation, a quartile, a confidence interval. Where y is NaN or
// infinite nothing was measured, and the line has a gap.
struct Point {
  double x = 0, y = 0;
  std::optional<double> low = {}, high = {};
};

struct Series {
  std::string name;
  std::vector<Point> points = {};
};

enum class Marks { lines, bars, dots };

// Lines over numbers; or, with `categories`, bars or dots, where the x of a point is the index of its category.
struct Plot {
  std::string title = {};
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  Marks marks = Marks::lines;
  std::vector<std::string> categories = {};
  std::string note = {};  // under it: what the ranges are, how many runs
};

// A cell that is a number is set to the right. All rows are as long as `columns`.
struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows = {};
};

// What was expected, and whether it came out.
enum class Outcome { confirmed, refuted, open };
struct Verdict {
  Outcome outcome = Outcome::open;
  std::string text;
};

struct Report {
  std::string title;
  std::vector<std::string> paragraphs = {};
  std::vector<Verdict> verdicts = {};
  std::vector<Plot> plots = {};
  std::vector<Table> tables = {};
  std::string footer = {};  // what made it: command, date, machine
};

// Throws Error where a plot or table contradicts itself. Text that is not UTF-8 is shown with escapes.
HEED_API std::string to_page(const Report&);
HEED_API void write(const std::string& path, const Report&);  // whole or not at all

}  // namespace heed::page
