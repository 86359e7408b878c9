// SPDX-License-Identifier: Apache-2.0
#include "heed/lab/experiment.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "heed/base/error.h"

namespace heed::lab {

Spread spread_of(std::span<const double> values) {
  if (values.empty()) throw Error("lab: a spread came without values, expected one a seed");
  double sum = 0;
  for (const double value : values) sum += value;
  return {.mean = sum / static_cast<double>(values.size()),
          .low = *std::min_element(values.begin(), values.end()),
          .high = *std::max_element(values.begin(), values.end())};
}

Series mean_of(std::string name, std::span<const Series> runs) {
  Series all{std::move(name)};
  for (size_t i = 0; i < runs.front().points.size(); ++i) {
    std::vector<double> values;
    for (const Series& one : runs) values.push_back(one.points.at(i).y);
    all.points.push_back(point(runs.front().points[i].x, spread_of(values)));
  }
  return all;
}

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

namespace {

std::string with_spread(const Spread& spread, std::string (*show)(double)) {
  if (spread.low == spread.high) return show(spread.mean);
  return show(spread.mean) + " (" + show(spread.low) + " to " + show(spread.high) + ")";
}

}  // namespace

std::string shown(const Spread& spread) { return with_spread(spread, shown); }
std::string percent(const Spread& spread) { return with_spread(spread, percent); }

Context::Context(const Options& options, Parallel& parallel, Progress progress, const Cancel* cancel)
    : options_(options), parallel_(parallel), progress_(std::move(progress)), cancel_(cancel) {
  for (uint64_t i = 0; i < (options.quick ? 1U : 3U); ++i) seeds_.push_back(options.seed + i);
}

void Context::step(int64_t steps) {
  check_cancel(cancel_);
  done_ += steps;
  if (progress_ && expected_ > 0) progress_(std::min(done_, expected_), expected_);
}

Result run(const Experiment& experiment, Context& context) {
  Result result = experiment.run(context);
  if (result.findings.size() != experiment.tests.size()) {
    throw Error("experiment '" + experiment.name + "' has " + std::to_string(result.findings.size()) +
                " findings, expected " + std::to_string(experiment.tests.size()) + ", one for each test");
  }
  return result;
}

bool held(const Result& result) {
  return std::ranges::all_of(result.findings, [](const Finding& finding) { return finding.held; });
}

}  // namespace heed::lab
