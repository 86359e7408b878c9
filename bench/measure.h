// SPDX-License-Identifier: Apache-2.0
#pragma once
// Interleaved timing. Things that are to be compared are run in turn, round after round, each between two samples of a
// yardstick (the machine's FMA rate), and only ratios within a round are trusted: the figure is the median of them.
// A machine that others use, too, has moments when it is quiet and moments when it is not, a few milliseconds or
// seconds long. Rounds go on until enough of them were quiet, or for some seconds; then the quiet ones count.
#include <functional>
#include <optional>
#include <vector>

#include "bench/machine.h"
#include "heed/base/parallel.h"

namespace heed::bench {

inline constexpr int kRounds = 31;
inline constexpr double kPatienceSeconds = 6;  // how long rounds go on for quiet ones beyond the first kRounds

// Where one thread does all the work, its own CPU time is counted, so that other programs do not count.
enum class Clock { wall, thread };
inline Clock clock_for(const Parallel& parallel) { return parallel.threads() == 1 ? Clock::thread : Clock::wall; }
double now(Clock);  // seconds

template <class F>
double time(Clock clock, F&& f) {  // seconds
  const double start = now(clock);
  f();
  return now(clock) - start;
}

struct Trial {
  enum class Kind {
    subject,   // sampled in every round
    baseline,  // in every sixth round where one call takes over 0.1 s
  };
  std::function<void()> run;
  Kind kind = Kind::subject;
};

struct Sample {
  double seconds;     // of one call
  double yardstick;   // mean of those before and after
  bool quiet = true;  // before and after
};

// One entry a round; empty in a round that passed the trial over.
using Series = std::vector<std::optional<Sample>>;

// One series a trial, of all rounds. Calls are repeated until a sample lasts two milliseconds; such short ones are
// warmed by one more. One under 20 ms is taken again, a few times, if another program was let onto the processor
// meanwhile. A number of rounds is kept to, quiet or not: for those who make rounds of their own around ours.
std::vector<Series> measure(const std::vector<Trial>&, Clock, const std::function<Moment()>& yardstick, int rounds = 0);

// How many rounds had nothing but quiet samples.
int quiet_rounds(const std::vector<Series>&);
// Those rounds alone, if there are 30 or more and each trial was sampled in some of them; otherwise all.
std::vector<Series> settled(const std::vector<Series>&);

// As if the two had been called one after the other.
Series sum(const Series&, const Series&);

// The middle value; the mean of the two middle ones where the number is even. Not of nothing.
double median(std::vector<double>);
// Medians over the rounds that have the samples.
double median_of(const Series&, const std::function<double(const Sample&)>&);
double median_time_ratio(const Series& numerator, const Series& denominator);

// What a row of any benchmark says of its subject: medians over the rounds that count.
struct Rates {
  double ms = 0, gflops = 0, percent_of_peak = 0, peak_gflops = 0;
  double percent_of_peak_all = 0;   // over all rounds, quiet or not
  double percent_of_peak_best = 0;  // the best time against the best peak
  int rounds = 0, quiet_rounds = 0;
};
// Of series[0] as measure() gave them, for a call of so many flops.
Rates rates_of(const std::vector<Series>&, double flops);

}  // namespace heed::bench
