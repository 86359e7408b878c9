// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace heed::bench {

double now(Clock clock) {
  timespec t;
  clock_gettime(clock == Clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

namespace {

constexpr double kSampleSeconds = 2e-3;
constexpr double kSlowSeconds = 0.1;
constexpr int kSlowEvery = 6;
constexpr int kAttempts = 5;
constexpr double kBriefSeconds = 0.02;
constexpr int kEnough = 30;  // quiet rounds

struct Schedule {
  int calls = 1;       // in one sample
  int every = 1;       // rounds
  bool brief = false;  // cheap enough to be taken again
};

double time_calls(const Trial& trial, int calls, Clock clock) {
  const double seconds = time(clock, [&] {
    for (int i = 0; i < calls; ++i) trial.run();
  });
  return seconds / calls;
}

Schedule calibrate(const Trial& trial, Clock clock) {
  double seconds = time_calls(trial, 1, clock);  // the first call also touches the memory
  if (seconds < kBriefSeconds) {
    for (int calls = 1; calls == 1 || (calls < 1024 && seconds * calls < kSampleSeconds); calls *= 2) {
      seconds = std::min(seconds, time_calls(trial, calls, clock));
    }
  }
  Schedule schedule;
  schedule.calls = static_cast<int>(std::ceil(std::clamp(kSampleSeconds / seconds, 1.0, 100000.0)));
  schedule.brief = seconds * schedule.calls < kBriefSeconds;
  if (trial.kind == Trial::Kind::baseline && seconds > kSlowSeconds) schedule.every = kSlowEvery;
  return schedule;
}

long preemptions() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

template <class F>
auto undisturbed(const F& sample) {
  decltype(sample()) value{};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const long before = preemptions();
    value = sample();
    if (preemptions() == before) break;
  }
  return value;
}

bool is_quiet(const std::vector<Series>& series, size_t round) {
  return std::all_of(series.begin(), series.end(), [&](const Series& one) { return !one[round] || one[round]->quiet; });
}

double sample(const Trial& trial, const Schedule& schedule, Clock clock) {
  const auto once = [&] {
    if (schedule.calls > 1) trial.run();
    return time_calls(trial, schedule.calls, clock);
  };
  return schedule.brief ? undisturbed(once) : once();
}

}  // namespace

std::vector<Series> measure(const std::vector<Trial>& trials, Clock clock, const std::function<Moment()>& yardstick,
                            int rounds) {
  std::vector<Schedule> schedules;
  schedules.reserve(trials.size());
  for (const Trial& trial : trials) schedules.push_back(calibrate(trial, clock));
  std::vector<Series> series(trials.size());
  const int least = rounds > 0 ? rounds : kRounds;
  int quiet = 0;
  double patient_until = 0;
  for (int round = 0; round < least || (quiet < kRounds && now(Clock::wall) < patient_until); ++round) {
    Moment before = undisturbed(yardstick);
    for (size_t i = 0; i < trials.size(); ++i) {
      series[i].emplace_back();
      if (round % schedules[i].every != 0) continue;
      const double seconds = sample(trials[i], schedules[i], clock);
      const Moment after = undisturbed(yardstick);
      series[i].back() = Sample{seconds, (before.fma_gflops + after.fma_gflops) / 2, before.quiet() && after.quiet()};
      before = after;
    }
    quiet += is_quiet(series, series[0].size() - 1) ? 1 : 0;
    if (rounds == 0 && round + 1 == kRounds) patient_until = now(Clock::wall) + kPatienceSeconds;
  }
  return series;
}

int quiet_rounds(const std::vector<Series>& series) {
  int quiet = 0;
  for (size_t round = 0; round < series[0].size(); ++round) quiet += is_quiet(series, round) ? 1 : 0;
  return quiet;
}

std::vector<Series> settled(const std::vector<Series>& all) {
  if (quiet_rounds(all) < kEnough) return all;
  std::vector<Series> chosen(all.size());
  for (size_t round = 0; round < all[0].size(); ++round) {
    if (!is_quiet(all, round)) continue;
    for (size_t i = 0; i < all.size(); ++i) chosen[i].push_back(all[i][round]);
  }
  const auto sampled = [](const Series& one) {
    return std::any_of(one.begin(), one.end(), [](const auto& sample) { return sample.has_value(); });
  };
  return std::all_of(chosen.begin(), chosen.end(), sampled) ? chosen : all;
}

Series sum(const Series& a, const Series& b) {
  assert(a.size() == b.size());
  Series total(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const std::optional<Sample>&x = a[i], &y = b[i];
    if (!x || !y) continue;
    const double seconds = x->seconds + y->seconds;
    const double work = x->seconds * x->yardstick + y->seconds * y->yardstick;
    total[i] = Sample{seconds, work / seconds, x->quiet && y->quiet};
  }
  return total;
}

double median(std::vector<double> values) {
  assert(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_of(const Series& series, const std::function<double(const Sample&)>& figure) {
  std::vector<double> values;
  for (const auto& s : series) {
    if (s) values.push_back(figure(*s));
  }
  return median(std::move(values));
}

double median_time_ratio(const Series& numerator, const Series& denominator) {
  assert(numerator.size() == denominator.size());
  std::vector<double> values;
  for (size_t i = 0; i < numerator.size(); ++i) {
    const std::optional<Sample>&above = numerator[i], &below = denominator[i];
    if (above && below) values.push_back(above->seconds / below->seconds);
  }
  return median(std::move(values));
}

Rates rates_of(const std::vector<Series>& all, double flops) {
  const Series chosen = settled(all)[0];
  const auto percent = [&](const Sample& s) { return 100 * flops * 1e-9 / s.seconds / s.yardstick; };
  Rates r{.rounds = static_cast<int>(all[0].size()), .quiet_rounds = quiet_rounds(all)};
  r.ms = median_of(chosen, [](const Sample& s) { return s.seconds * 1e3; });
  r.gflops = median_of(chosen, [&](const Sample& s) { return flops * 1e-9 / s.seconds; });
  r.peak_gflops = median_of(chosen, [](const Sample& s) { return s.yardstick; });
  r.percent_of_peak = median_of(chosen, percent);
  r.percent_of_peak_all = median_of(all[0], percent);
  Sample best{std::numeric_limits<double>::infinity(), 0};
  for (const auto& sample : all[0]) {
    if (!sample) continue;
    best.seconds = std::min(best.seconds, sample->seconds);
    best.yardstick = std::max(best.yardstick, sample->yardstick);
  }
  r.percent_of_peak_best = percent(best);
  return r;
}

}  // namespace heed::bench
