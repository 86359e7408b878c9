// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "heed/base/error.h"
#include "heed/base/file.h"

namespace heed::lab {
namespace {

using Json = nlohmann::ordered_json;

// Infinity and NaN are not JSON's.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const page::Axis& axis) {
  return {{"label", axis.label}, {"scale", axis.scale == page::Scale::log ? "log" : "linear"}};
}

Json to_json(const Plot& plot) {
  Json series = Json::array();
  for (const Series& one : plot.series) {
    Json points = Json::array();
    for (const Point& p : one.points) {
      const Spread spread = spread_at(p);
      points.push_back(
          {{"x", number(p.x)}, {"y", number(p.y)}, {"low", number(spread.low)}, {"high", number(spread.high)}});
    }
    series.push_back({{"name", one.name}, {"points", std::move(points)}});
  }
  return {{"title", plot.title},
          {"x", to_json(plot.x)},
          {"y", to_json(plot.y)},
          {"categories", plot.categories},
          {"series", std::move(series)}};
}

Json to_json(const Table& table) { return {{"title", table.title}, {"columns", table.columns}, {"rows", table.rows}}; }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return result;
}

constexpr const char* kIndexHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>heed lab</title>
<style>
  :root { color-scheme: light dark; --ground: #fbfbf9; --ink: #1c2024; --soft: #5a636b; --accent: #b3400e; }
  @media (prefers-color-scheme: dark) {
    :root { --ground: #14171b; --ink: #e9ebec; --soft: #a3acb4; --accent: #ff9a5c; }
  }
  body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; background: var(--ground); color: var(--ink);
         font: 15px/1.5 system-ui, sans-serif; }
  h1 { font-size: 22px; line-height: 1.3; }
  a { color: var(--accent); }
  dt { font-weight: 600; margin-top: 1.2rem; }
  dd { margin: 0; }
  .verdict { color: var(--soft); font-size: 14px; }
</style>
</head>
<body>
<h1>Claims about attention, put to the test</h1>
<dl>
)";

}  // namespace

std::string to_text(const Table& table) {
  std::vector<size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(column.size());
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) widths.at(i) = std::max(widths.at(i), row[i].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      text += cells[i];
      if (i + 1 < cells.size()) text += std::string(widths[i] - cells[i].size() + 2, ' ');
    }
    return text + "\n";
  };
  std::string text = table.title + "\n" + line(table.columns);
  for (const auto& row : table.rows) text += line(row);
  return text;
}

std::string verdict(const Report& report) {
  const auto& findings = report.result.findings;
  const auto passed = std::ranges::count_if(findings, [](const Finding& finding) { return finding.held; });
  return report.experiment.name + ": the claim " + (held(report.result) ? "held" : "did not hold") + ", " +
         std::to_string(passed) + " of " + std::to_string(findings.size()) + " tests" +
         (report.options.quick ? " (a quick run: small, one seed)" : "");
}

std::string command(const Report& report) {
  return "heed lab " + report.experiment.name + (report.options.quick ? " --quick" : "") + " --seed " +
         std::to_string(report.options.seed);
}

std::string settings(const Report& report) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.0f s", report.seconds);
  std::string text = std::string(seconds) + " with " + std::to_string(report.threads) + " threads";
  for (const std::string& more : {report.machine, report.date}) text += (more.empty() ? "" : ", ") + more;
  return text;
}

std::string introduction(const Experiment& experiment) {
  std::string text = experiment.name + ": " + experiment.claim + "\n" + experiment.method + "\n";
  for (size_t i = 0; i < experiment.tests.size(); ++i) {
    text += "test " + std::to_string(i + 1) + ": " + experiment.tests[i] + "\n";
  }
  return text;
}

std::string findings_text(const Report& report) {
  std::string text;
  for (size_t i = 0; i < report.result.findings.size(); ++i) {
    const Finding& finding = report.result.findings[i];
    text += "test " + std::to_string(i + 1) + (finding.held ? " held: " : " did not hold: ") + finding.measured + "\n";
  }
  return text + verdict(report) + "\n";
}

std::string to_json(const Report& report) {
  Json findings = Json::array(), tables = Json::array(), plots = Json::array();
  for (size_t i = 0; i < report.result.findings.size(); ++i) {
    const Finding& finding = report.result.findings[i];
    findings.push_back({{"test", report.experiment.tests[i]}, {"held", finding.held}, {"measured", finding.measured}});
  }
  for (const Table& table : report.result.tables) tables.push_back(to_json(table));
  for (const Plot& plot : report.result.plots) plots.push_back(to_json(plot));
  const Json json = {{"format", "heed-lab"},
                     {"version", 1},
                     {"name", report.experiment.name},
                     {"claim", report.experiment.claim},
                     {"method", report.experiment.method},
                     {"quick", report.options.quick},
                     {"seed", report.options.seed},
                     {"threads", report.threads},
                     {"machine", report.machine},
                     {"date", report.date},
                     {"command", command(report)},
                     {"seconds", std::round(report.seconds * 10) / 10},
                     {"held", held(report.result)},
                     {"verdict", verdict(report)},
                     {"findings", std::move(findings)},
                     {"tables", std::move(tables)},
                     {"plots", std::move(plots)}};
  return json.dump(1) + "\n";
}

page::Report to_page(const Report& report) {
  page::Report page{.title = report.experiment.name + ": " + report.experiment.claim,
                    .paragraphs = {report.experiment.method, verdict(report) + "."},
                    .plots = report.result.plots,
                    .tables = report.result.tables,
                    .footer = command(report) + ", " + settings(report)};
  for (size_t i = 0; i < report.result.findings.size(); ++i) {
    const Finding& finding = report.result.findings[i];
    page.verdicts.push_back({finding.held ? page::Outcome::confirmed : page::Outcome::refuted,
                             report.experiment.tests[i] + ": " + finding.measured});
  }
  for (page::Plot& plot : page.plots) {
    if (plot.note.empty()) plot.note = report.options.quick ? "One seed." : "Mean, lowest and highest of three seeds.";
  }
  return page;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(folder + ": cannot create the folder: " + error.message());
}

void save(const Report& report, const std::string& folder) {
  make_folder(folder);
  const std::string json = to_json(report);
  write_file_atomically(folder + "/result.json", std::as_bytes(std::span(json)));
  page::write(folder + "/index.html", to_page(report));
}

void save_index(std::span<const Report> reports, const std::string& folder) {
  std::string page = kIndexHead;
  for (const Report& report : reports) {
    const std::string& name = report.experiment.name;
    page += "<dt><a href=\"" + name + "/index.html\">" + name + "</a></dt>\n<dd>" + escaped(report.experiment.claim) +
            "</dd>\n<dd class=\"verdict\">" + escaped(verdict(report)) + "; " + settings(report) + "</dd>\n";
  }
  page += "</dl>\n</body>\n</html>\n";
  make_folder(folder);
  write_file_atomically(folder + "/index.html", std::as_bytes(std::span(page)));
}

}  // namespace heed::lab
