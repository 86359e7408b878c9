// SPDX-License-Identifier: Apache-2.0
#include "heed/train/curve.h"

#include <algorithm>
#include <cstdio>

#include "heed/page/report.h"

namespace heed::train {
namespace {

page::Series series(const std::string& name, const std::vector<Point>& points) {
  page::Series out{.name = name};
  for (const auto& [step, value] : points) out.points.push_back({static_cast<double>(step), value});
  return out;
}

// 'Lowest dev loss: 1.234 at step 500.'
std::string best(const char* name, const Point& point) {
  char value[32];
  std::snprintf(value, sizeof value, "%.4g", point.value);
  return name + std::string(": ") + value + " at step " + std::to_string(point.step) + ".";
}

bool less(const Point& a, const Point& b) { return a.value < b.value; }

}  // namespace

std::string curve_page(const std::string& title, const Curves& curves) {
  page::Report report{.title = title};
  report.plots.push_back(
      {.title = "Loss of a token",
       .x = {"step"},
       .y = {.label = "loss in nats", .low = 0},
       .series = {series("training, with label smoothing", curves.loss), series("dev", curves.dev_loss)}});
  if (!curves.dev_loss.empty()) {
    report.plots.back().note = best("Lowest dev loss", *std::ranges::min_element(curves.dev_loss, less));
  }
  if (!curves.dev_bleu.empty()) {
    report.plots.push_back({.title = "BLEU of the dev set",
                            .x = {"step"},
                            .y = {.label = "BLEU", .low = 0},
                            .series = {series("dev", curves.dev_bleu)},
                            .note = best("Highest BLEU", *std::ranges::max_element(curves.dev_bleu, less))});
  }
  report.plots.push_back({.title = "Learning rate",
                          .x = {"step"},
                          .y = {.label = "learning rate", .low = 0},
                          .series = {series("rate", curves.rate)}});
  return page::to_page(report);
}

}  // namespace heed::train
