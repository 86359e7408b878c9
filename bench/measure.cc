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
double undisturbed(const F& sample) {
  double value = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const long before = preemptions();
    value = sample();
    if (preemptions() == before) break;
  }
  return value;
}

double sample(const Trial& trial, const Schedule& schedule, Clock clock) {
  const auto once = [&] {
    if (schedule.calls > 1) trial.run();
    return time_calls(trial, schedule.calls, clock);
  };
  return schedule.brief ? undisturbed(once) : once();
}

}  // namespace

std::vector<Series> measure(const std::vector<Trial>& trials, Clock clock, const std::function<double()>& yardstick) {
  std::vector<Schedule> schedules;
  for (const Trial& trial : trials) schedules.push_back(calibrate(trial, clock));
  std::vector<Series> series(trials.size(), Series(kRounds));
  for (int round = 0; round < kRounds; ++round) {
    double before = undisturbed(yardstick);
    for (size_t i = 0; i < trials.size(); ++i) {
      if (round % schedules[i].every != 0) continue;
      const double seconds = sample(trials[i], schedules[i], clock);
      const double after = undisturbed(yardstick);
      series[i][static_cast<size_t>(round)] = Sample{seconds, (before + after) / 2};
      before = after;
    }
  }
  return series;
}

Series sum(const Series& a, const Series& b) {
  assert(a.size() == b.size());
  Series total(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i] || !b[i]) continue;
    const double seconds = a[i]->seconds + b[i]->seconds;
    const double work = a[i]->seconds * a[i]->yardstick + b[i]->seconds * b[i]->yardstick;
    total[i] = Sample{seconds, work / seconds};
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
    if (numerator[i] && denominator[i]) values.push_back(numerator[i]->seconds / denominator[i]->seconds);
  }
  return median(std::move(values));
}

double best_seconds(const Series& series) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& sample : series) {
    if (sample) best = std::min(best, sample->seconds);
  }
  return best;
}

double best_yardstick(const Series& series) {
  double best = 0;
  for (const auto& sample : series) {
    if (sample) best = std::max(best, sample->yardstick);
  }
  return best;
}

}  // namespace heed::bench
