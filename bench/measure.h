#pragma once
// Interleaved timing. Things that are to be compared are run in turn, round after round, each between two samples of a
// yardstick (the machine's FMA rate), and only ratios within a round are trusted: the figure is the median of them.
#include <functional>
#include <optional>
#include <vector>

#include "heed/base/parallel.h"

namespace heed::bench {

inline constexpr int kRounds = 31;

// Where one thread does all the work, its own processor time is counted, so that the turns of other programs are not.
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
  double seconds;    // of one call
  double yardstick;  // mean of those before and after
};

// One entry a round; empty in a round that passed the trial over.
using Series = std::vector<std::optional<Sample>>;

double best_seconds(const Series&);    // of one call, over all rounds
double best_yardstick(const Series&);  // the highest

// One series a trial. Calls are repeated until a sample lasts two milliseconds; such short ones are warmed by one more.
// One under 20 ms is taken again, a few times, if another program was let onto the processor meanwhile.
std::vector<Series> measure(const std::vector<Trial>&, Clock, const std::function<double()>& yardstick);

// As if the two had been called one after the other.
Series sum(const Series&, const Series&);

// The middle value; the mean of the two middle ones where the number is even. Not of nothing.
double median(std::vector<double>);
// Medians over the rounds that have the samples.
double median_of(const Series&, const std::function<double(const Sample&)>&);
double median_time_ratio(const Series& numerator, const Series& denominator);

}  // namespace heed::bench
