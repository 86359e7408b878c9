// SPDX-License-Identifier: Apache-2.0
#pragma once
// An experiment: a claim about attention, the tests that it has to pass, stated before anything runs, and a function
// that measures. What it finds are tables and plots for people, and for each test whether it held.
// Not here: the experiments (experiments.h), how results are shown (report.h), how small models are trained
// (training.h).
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/base/cancel.h"
#include "heed/base/parallel.h"
#include "heed/base/rng.h"
#include "heed/page/report.h"

namespace heed::lab {

struct Options {
  bool quick{false};  // smaller, over fewer seeds: shows that it works, decides little
  uint64_t seed{1};   // of the first run; the others count on from it
};

// The mean over the seeds, and the lowest and highest of them.
struct Spread {
  double mean = 0, low = 0, high = 0;
};
Spread spread_of(std::span<const double> values);

// Tables, and curves whose points have a range: the spread over the seeds.
using page::Plot, page::Point, page::Series, page::Table;
inline Point point(double x, const Spread& y) { return {x, y.mean, y.low, y.high}; }
inline Point point(double x, double y) { return {x, y}; }
// Of curves over the same x, one a seed: the spread at each.
Series mean_of(std::string name, std::span<const Series> runs);
inline Spread spread_at(const Point& p) { return {p.y, p.low.value_or(p.y), p.high.value_or(p.y)}; }

// Three digits: "0.0123", "123", "1.2e-07"; and with the spread over seeds, "0.912 (0.89 to 0.93)".
std::string shown(double value);
std::string shown(const Spread&);
std::string percent(double share);  // of a number from 0 to 1: "91.2 %"
std::string percent(const Spread&);

// How a test came out: in words, with the numbers that decided it.
struct Finding {
  bool held;
  std::string measured;
};

struct Result {
  std::vector<Finding> findings;  // one for each test of the experiment, in their order
  std::vector<Table> tables{};
  std::vector<Plot> plots{};
};

// What an experiment runs with.
class Context {
 public:
  // How many steps of how many are done.
  using Progress = std::function<void(int64_t done, int64_t all)>;

  Context(const Options& options, Parallel& parallel, Progress progress = {}, const Cancel* cancel = nullptr);

  bool quick() const { return options_.quick; }
  // `full`, or with --quick `quick`.
  template <class T>
  T size(const T& full, const T& quick) const {
    return options_.quick ? quick : full;
  }
  // Three runs, or with --quick one.
  std::span<const uint64_t> seeds() const { return seeds_; }
  Parallel& parallel() { return parallel_; }
  const Cancel* cancel() const { return cancel_; }

  // How many steps there will be, of any kind that take about the same time; then each as it is done.
  void expect(int64_t steps) { expected_ = steps; }
  // Throws Cancelled where that was requested.
  void step(int64_t steps = 1);

 private:
  Options options_;
  std::vector<uint64_t> seeds_;
  Parallel& parallel_;
  Progress progress_;
  const Cancel* cancel_;
  int64_t expected_ = 0, done_ = 0;
};

struct Experiment {
  std::string name;
  std::string claim;               // what is said of attention, in a sentence
  std::string method;              // what is measured, in a few
  std::vector<std::string> tests;  // each can come out either way; why its threshold is what it is
  Result (*run)(Context&);
};

// Runs it. Throws Error where it has not a finding for each test; Cancelled.
Result run(const Experiment&, Context&);
// Whether all tests held.
bool held(const Result&);

}  // namespace heed::lab
