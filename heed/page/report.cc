// SPDX-License-Identifier: Apache-2.0
#include "heed/page/report.h"

#include <cmath>
#include <span>
#include <string_view>

#include "heed/base/describe.h"
#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/io/json.h"
#include "heed/io/quote.h"
#include "heed/page/shell.h"

namespace heed::page {
namespace {

std::string json_of(const std::string& text) {
  try {
    return io::json_string(text);
  } catch (const Error&) {  // it is not UTF-8, such as the name of a folder
    return io::json_string(io::quote(text));
  }
}
std::string json_of(double x) { return std::isfinite(x) ? shortest(x) : "null"; }

// [one,two,...]
template <class T, class F>
std::string list(const std::vector<T>& values, const F& json) {
  std::string out = "[";
  for (const T& value : values) {
    if (out.size() > 1) out += ',';
    out += json(value);
  }
  return out + "]";
}
std::string list(const std::vector<std::string>& texts) {
  return list(texts, [](const std::string& text) { return json_of(text); });
}

std::string json_of(const Axis& axis) {
  std::string out = "{\"label\":" + json_of(axis.label) + (axis.scale == Scale::log ? ",\"scale\":\"log\"" : "");
  if (axis.low) out += ",\"low\":" + json_of(*axis.low);
  if (axis.high) out += ",\"high\":" + json_of(*axis.high);
  return out + "}";
}

std::string json_of(const Point& point) {
  std::string out = "[" + json_of(point.x) + "," + json_of(point.y);
  if (point.low && point.high) out += "," + json_of(*point.low) + "," + json_of(*point.high);
  return out + "]";
}

std::string json_of(const Series& series) {
  return "{\"name\":" + json_of(series.name) +
         ",\"points\":" + list(series.points, [](const Point& point) { return json_of(point); }) + "}";
}

std::string_view name_of(Marks marks) {
  return marks == Marks::lines ? "lines" : marks == Marks::bars ? "bars" : "dots";
}
std::string_view name_of(Outcome outcome) {
  return outcome == Outcome::confirmed ? "confirmed" : outcome == Outcome::refuted ? "refuted" : "open";
}

std::string json_of(const Plot& plot) {
  std::string out = "{\"title\":" + json_of(plot.title) + ",\"marks\":\"" + std::string(name_of(plot.marks)) +
                    "\",\"x\":" + json_of(plot.x) + ",\"y\":" + json_of(plot.y);
  if (!plot.categories.empty()) out += ",\"categories\":" + list(plot.categories);
  if (!plot.note.empty()) out += ",\"note\":" + json_of(plot.note);
  return out + ",\"series\":" + list(plot.series, [](const Series& series) { return json_of(series); }) + "}";
}

std::string json_of(const Table& table) {
  return "{\"title\":" + json_of(table.title) + ",\"columns\":" + list(table.columns) +
         ",\"rows\":" + list(table.rows, [](const auto& row) { return list(row); }) + "}";
}

void check_point(const std::string& where, const Plot& plot, const Point& point) {
  if (!std::isfinite(point.x)) throw Error(where + " has an x that is not a finite number");
  if (point.low.has_value() != point.high.has_value()) {
    throw Error(where + " has one end of a range, expected both or none");
  }
  if (point.low && !(std::isfinite(*point.low) && std::isfinite(*point.high) && *point.low <= *point.high)) {
    throw Error(where + " has the range " + json_of(*point.low) + " to " + json_of(*point.high) +
                ", expected two finite numbers, the lower one first");
  }
  const auto categories = static_cast<double>(plot.categories.size());
  if (plot.marks != Marks::lines && (point.x < 0 || point.x >= categories || point.x != std::floor(point.x))) {
    throw Error(where + " is at " + json_of(point.x) + ", expected the index of one of " +
                std::to_string(plot.categories.size()) + " categories");
  }
}

void check(const Plot& plot) {
  const std::string where = "page: plot " + io::quote(plot.title);
  if (plot.marks == Marks::lines && !plot.categories.empty()) {
    throw Error(where + " has lines and categories, expected bars or dots");
  }
  if (plot.marks == Marks::bars && plot.y.scale == Scale::log) {
    throw Error(where + " has bars on a logarithmic axis, where none begins at 0, expected dots");
  }
  for (const Series& series : plot.series) {
    for (size_t i = 0; i < series.points.size(); ++i) {
      check_point(where + ": point " + std::to_string(i) + " of " + io::quote(series.name), plot, series.points[i]);
    }
  }
}

void check(const Table& table) {
  for (const auto& row : table.rows) {
    if (row.size() != table.columns.size()) {
      throw Error("page: table " + io::quote(table.title) + " has a row of " + std::to_string(row.size()) +
                  " cells, expected " + std::to_string(table.columns.size()));
    }
  }
}

std::string json_of(const Report& report) {
  std::string out = "{\"format\":\"heed-report\",\"version\":\"1.0\",\"title\":" + json_of(report.title) +
                    ",\"paragraphs\":" + list(report.paragraphs);
  out +=
      ",\"verdicts\":" + list(report.verdicts, [](const Verdict& verdict) {
        return "{\"outcome\":\"" + std::string(name_of(verdict.outcome)) + "\",\"text\":" + json_of(verdict.text) + "}";
      });
  out += ",\"plots\":" + list(report.plots, [](const Plot& plot) { return json_of(plot); });
  out += ",\"tables\":" + list(report.tables, [](const Table& table) { return json_of(table); });
  return out + ",\"footer\":" + json_of(report.footer) + "}";
}

}  // namespace

std::string to_page(const Report& report) {
  for (const Plot& plot : report.plots) check(plot);
  for (const Table& table : report.tables) check(table);
  return filled(report_shell(), json_of(report));
}

void write(const std::string& path, const Report& report) {
  const std::string page = to_page(report);
  write_file_atomically(path, std::as_bytes(std::span(page)));
}

}  // namespace heed::page
