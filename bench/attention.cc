// SPDX-License-Identifier: Apache-2.0
#include "bench/attention.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>

#include "bench/grid.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/problem.h"
#include "bench/report.h"
#include "bench/tanh.h"
#include "heed/kernels/attention/targets.h"

namespace heed::bench {

namespace {

// From here on, forward, backward and both are taken from the same calls: timed apart, they would take minutes, and
// calls this long do not share a cache with the one before.
constexpr double kLongFlops = 4e9;

std::function<void()> fused_call(Problem& problem, Pass pass) {
  switch (pass) {
    case Pass::backward:
      return [&problem] { problem.backward(); };
    case Pass::forward_backward:
      return [&problem] {
        problem.forward_with_stats();
        problem.backward();
      };
    case Pass::forward:
    case Pass::decode:
      break;
  }
  return [&problem] { problem.forward(); };
}

std::function<void()> unfused_call(Unfused& unfused, Pass pass) {
  switch (pass) {
    case Pass::backward:
      return [&unfused] { unfused.backward(); };
    case Pass::forward_backward:
      return [&unfused] {
        unfused.forward_keeping();
        unfused.backward();
      };
    case Pass::forward:
    case Pass::decode:
      break;
  }
  return [&unfused] { unfused.forward(); };
}

// What one row was measured as, round by round.
struct RowSeries {
  Rates rates;
  Series fused;
  std::optional<Series> unfused = {}, read = {}, plain = {}, tanh = {};
};

// The rows of one case, each in rounds of its own unless they are long.
class CaseBench {
 public:
  CaseBench(const Case& c, Parallel& parallel, ReadProbe& probe, int rounds)
      : parallel_(parallel), probe_(probe), case_(c), rounds_(rounds) {}

  // Calls done(figures) after each row.
  template <class Done>
  void run(const std::vector<Pass>& passes, const Done& done) {
    sample_read();
    problem_ = std::make_unique<Problem>(case_, parallel_);
    if (plain_case(case_) != case_) plain_ = std::make_unique<Problem>(plain_case(case_), parallel_);
    prepare_backward(passes);
    if (flops(Pass::forward, case_) < kLongFlops || plain_) {
      for (Pass pass : passes) done(finish(pass, measure_row(pass)));
    } else {
      for (const auto& [pass, series] : measure_long(passes)) done(finish(pass, series));
    }
  }

 private:
  void sample_read() {
    for (int i = 0; i < 5; ++i) reads_.push_back(probe_.sample_gbps(parallel_));
  }

  // Backward reads what a forward has kept.
  void prepare_backward(const std::vector<Pass>& passes) {
    if (std::find(passes.begin(), passes.end(), Pass::backward) == passes.end()) return;
    problem_->forward_with_stats();
    if (problem_->unfused()) problem_->unfused()->forward_keeping();
    if (plain_) plain_->forward_with_stats();
  }

  RowSeries measure_row(Pass pass) {
    RowSeries row;
    std::vector<Trial> trials = {{fused_call(*problem_, pass)}};
    std::vector<std::optional<Series>*> compared;  // where the series of the other trials go
    const auto compare = [&](std::optional<Series>& to, Trial trial) {
      trials.push_back(std::move(trial));
      compared.push_back(&to);
    };
    const std::vector<Bytes> bytes = problem_->keys_and_values();
    if (pass == Pass::decode) compare(row.read, {[&] { read_all(bytes, parallel_); }});
    if (tanhs(case_) > 0) compare(row.tanh, {[&] { tanh_.run(parallel_); }});
    if (plain_) compare(row.plain, {fused_call(*plain_, pass)});
    if (Unfused* unfused = problem_->unfused()) {
      compare(row.unfused, {unfused_call(*unfused, pass), Trial::Kind::baseline});
    }
    const std::vector<Series> all = measure(trials);
    row.rates = rates_of(all, flops(pass, case_));
    std::vector<Series> series = settled(all);
    row.fused = std::move(series.front());
    for (size_t i = 0; i < compared.size(); ++i) *compared[i] = std::move(series[i + 1]);
    return row;
  }

  std::vector<std::pair<Pass, RowSeries>> measure_long(const std::vector<Pass>& passes) {
    const auto wanted = [&](Pass pass) { return std::find(passes.begin(), passes.end(), pass) != passes.end(); };
    const bool both = wanted(Pass::forward_backward);
    std::vector<Pass> timed;
    if (both || wanted(Pass::forward)) timed.push_back(Pass::forward);
    if (both || wanted(Pass::backward)) timed.push_back(Pass::backward);
    Unfused& unfused = *problem_->unfused();  // no case with an extra comes here
    std::vector<Trial> trials;
    for (Pass pass : timed) {
      if (pass == Pass::forward && both) {
        trials.push_back({[&] { problem_->forward_with_stats(); }});
        trials.push_back({[&] { unfused.forward_keeping(); }, Trial::Kind::baseline});
      } else {
        trials.push_back({fused_call(*problem_, pass)});
        trials.push_back({unfused_call(unfused, pass), Trial::Kind::baseline});
      }
    }
    const std::vector<Series> all = measure(trials);
    std::vector<std::pair<Pass, RowSeries>> rows;
    const auto add = [&](Pass pass, const Series& fused, const Series& other) {
      const std::vector<Series> pair = {fused, other}, chosen = settled(pair);
      rows.push_back({pass, {rates_of(pair, flops(pass, case_)), chosen[0], chosen[1]}});
    };
    for (size_t i = 0; i < timed.size(); ++i) {
      if (wanted(timed[i])) add(timed[i], all[2 * i], all[2 * i + 1]);
    }
    if (both) add(Pass::forward_backward, sum(all[0], all[2]), sum(all[1], all[3]));
    return rows;
  }

  std::vector<Series> measure(const std::vector<Trial>& trials) {
    return bench::measure(
        trials, clock_for(parallel_), [&] { return sample_moment(parallel_); }, rounds_);
  }

  Figures finish(Pass pass, const RowSeries& series) {
    sample_read();
    Figures f{.row = {pass, case_}, .threads = parallel_.threads(), .rates = series.rates};
    if (series.unfused) f.ratio_to_unfused = median_time_ratio(*series.unfused, series.fused);
    if (series.read) f.percent_of_read = 100 * median_time_ratio(*series.read, series.fused);
    if (series.plain) {
      const double scores =
          static_cast<double>(visible_scores(case_)) / static_cast<double>(visible_scores(plain_case(case_)));
      f.time_per_score_ratio = median_time_ratio(series.fused, *series.plain) / scores;
    }
    if (series.tanh) {
      const double probes = static_cast<double>(tanhs(case_)) / static_cast<double>(TanhProbe::count(parallel_));
      f.percent_of_tanh = 100 * probes * median_time_ratio(*series.tanh, series.fused);
    }
    f.read_gbps = median(reads_);
    reads_.erase(reads_.begin(), reads_.begin() + 5);  // those after this row are those before the next
    return f;
  }

  Parallel& parallel_;
  ReadProbe& probe_;
  Case case_;
  int rounds_;
  std::unique_ptr<Problem> problem_, plain_;
  TanhProbe tanh_;
  std::vector<double> reads_;
};

void print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

void bench_attention(const BenchOptions& options) {
  const std::vector<Row> rows = select(attention_grid(), options.filter);
  std::optional<JsonFile> file;
  if (!options.json.empty()) file.emplace(options.json);
  kernels::use_simd_target(options.simd);
  Parallel parallel(options.threads);
  ReadProbe probe;
  Report report{.cpu = cpu_model(),
                .simd = kernels::simd_target(),
                .date = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr))),
                .threads = parallel.threads()};
  print(fmt::format("{}, {}, {} thread{}, {}", report.cpu, report.simd, report.threads, report.threads == 1 ? "" : "s",
                    report.date));
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5) {
    print(fmt::format("The machine is busy (load {:.1f}): other programs make these figures worse.", load));
  }
  print(table_header());
  std::vector<double> peaks, reads;
  for (size_t i = 0; i < rows.size();) {
    std::vector<Pass> passes;
    const Case& c = rows[i].problem;
    for (; i < rows.size() && rows[i].problem == c; ++i) passes.push_back(rows[i].pass);
    CaseBench(c, parallel, probe, options.rounds).run(passes, [&](const Figures& figures) {
      print(table_line(figures));
      peaks.push_back(figures.rates.peak_gflops);
      reads.push_back(figures.read_gbps);
      report.rows.push_back(figures);
    });
  }
  report.peak_gflops = median(peaks);
  report.read_gbps = median(reads);
  print(fmt::format("FMA peak {:.1f} GFLOP/s, read {:.1f} GB/s", report.peak_gflops, report.read_gbps));
  if (file) file->commit(to_json(report));
}

}  // namespace heed::bench
