// SPDX-License-Identifier: Apache-2.0
#include "bench/layers.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/measure.h"
#include "bench/report.h"
#include "heed/base/error.h"
#include "heed/kernels/attention/targets.h"

namespace heed::bench {

namespace {

using Json = nlohmann::ordered_json;

bool matches(const std::string& text, const std::string& filter) {
  std::istringstream words(filter);
  for (std::string word; words >> word;) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

std::vector<LayerRow> select(std::vector<LayerRow> rows, const std::string& filter) {
  const std::string example = name(rows.front());
  const auto named = std::find_if(rows.begin(), rows.end(), [&](const LayerRow& row) { return name(row) == filter; });
  if (named != rows.end()) return {*named};
  std::erase_if(rows, [&](const LayerRow& row) { return !matches(name(row), filter); });
  if (rows.empty()) {
    throw Error("--filter is '" + filter + "' and leaves no row, expected words of names such as '" + example + "'");
  }
  return rows;
}

Json to_json(const LayerRow& row, const LayerFigures& f, int threads) {
  Json json = {{"layer", row.layer}, {"pass", row.pass}};
  for (const auto& [letter, extent] : row.sizes) json[letter] = extent;
  json["weights"] = row.weights;
  json["threads"] = threads;
  add_rates(json, f.rates);
  json["percent_of_read"] = optional(f.percent_of_read);
  json["percent_of_limit"] = optional(f.percent_of_limit);
  return json;
}

void print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string table_line(const LayerRow& row, const LayerFigures& f) {
  const auto figure = [](const std::optional<double>& x) { return x ? fmt::format("{:.1f}", *x) : std::string("-"); };
  return fmt::format("{:<60} {} {:>7} {:>7}", name(row), rates_columns(f.rates), figure(f.percent_of_read),
                     figure(f.percent_of_limit));
}

}  // namespace

std::string name(const LayerRow& row) {
  std::string text = row.layer + " " + row.pass;
  for (const auto& [letter, extent] : row.sizes) text += fmt::format(" {}={}", letter, extent);
  return text + " " + row.weights;
}

std::vector<LayerRow> layer_rows() {
  std::vector<LayerRow> rows = linear_rows();
  for (const auto& more : {encoder_rows(), recurrent_rows(), attentive_rows()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

LayerFigures measure_layer(const LayerProblem& problem, Parallel& parallel, int rounds) {
  std::vector<Trial> trials = {{problem.run}};
  if (!problem.read.empty()) trials.push_back({[&] { read_all(problem.read, parallel); }});
  const std::vector<Series> all = measure(
      trials, clock_for(parallel), [&] { return sample_moment(parallel); }, rounds);
  LayerFigures f{.rates = rates_of(all, problem.flops)};
  f.rates.ms /= static_cast<double>(problem.calls);
  if (!problem.read.empty()) {
    const std::vector<Series> series = settled(all);
    f.percent_of_read = 100 * median_time_ratio(series[1], series[0]);
    f.percent_of_limit = std::max(*f.percent_of_read, f.rates.percent_of_peak);
  }
  return f;
}

void bench_layers(const BenchOptions& options) {
  const std::vector<LayerRow> rows = select(layer_rows(), options.filter);
  std::optional<JsonFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  kernels::use_simd_target(options.simd);
  Parallel parallel(options.threads);
  const std::string date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  print(fmt::format("{}, {}, {} thread{}, {}", cpu_model(), kernels::simd_target(), parallel.threads(),
                    parallel.threads() == 1 ? "" : "s", date));
  print(fmt::format("{:<60} {} {:>7} {:>7}", "row", rates_header(), "% read", "% limit"));
  Json all = {{"cpu", cpu_model()}, {"simd", kernels::simd_target()}, {"date", date}, {"threads", parallel.threads()}};
  all["rows"] = Json::array();
  for (const LayerRow& row : rows) {
    const LayerFigures figures = measure_layer(row.make(parallel), parallel, options.rounds);
    print(table_line(row, figures));
    all["rows"].push_back(to_json(row, figures, parallel.threads()));
  }
  if (file) file->commit(all.dump(2) + "\n");
}

}  // namespace heed::bench
