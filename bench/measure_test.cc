// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace heed::bench {
namespace {

TEST(Measure, MedianIsTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Measure, RatiosAreTakenWithinARound) {
  const Series a = {Sample{2, 1}, std::nullopt, Sample{6, 1}, Sample{9, 1}};
  const Series b = {Sample{1, 1}, Sample{5, 1}, Sample{2, 1}, std::nullopt};
  EXPECT_EQ(median_time_ratio(a, b), 2.5);
}

TEST(Measure, SumWeighsTheYardstickByTime) {
  const Series total = sum({Sample{1, 100}, std::nullopt}, {Sample{3, 80}, Sample{1, 1}});
  EXPECT_EQ(total[0]->seconds, 4);
  EXPECT_EQ(total[0]->yardstick, 85);
  EXPECT_FALSE(total[1]);
}

TEST(Measure, EveryRoundHasEachSubjectBetweenTwoYardsticks) {
  std::string log;
  const auto note = [&](char c) {  // repetitions are the schedule's business
    if (log.empty() || log.back() != c) log += c;
  };
  const std::vector<Series> series = measure({{[&] { note('a'); }}, {[&] { note('b'); }}}, Clock::wall, [&] {
    note('|');
    return Moment{1, 1};
  });
  std::string expected = "ab";  // calibration
  for (int round = 0; round < kRounds; ++round) expected += "|a|b";
  EXPECT_EQ(log, expected + "|");
  for (const Series& one : series) {
    for (const auto& sample : one) EXPECT_TRUE(sample && sample->seconds > 0);
  }
}

TEST(Measure, KeepsToANumberOfRounds) {
  const auto busy = [] { return Moment{2, 1}; };  // never quiet
  EXPECT_EQ(measure({{[] {}}}, Clock::wall, busy, 3)[0].size(), 3u);
  EXPECT_EQ(measure({{[] {}}}, Clock::wall, busy, 40)[0].size(), 40u);
}

TEST(Measure, TheYardstickIsTheMeanOfBothSides) {
  int tick = 0;
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  const std::vector<Series> series = measure({{sleep}}, Clock::wall, [&] {
    return ++tick % 2 ? Moment{10, 10} : Moment{20, 20};
  });
  EXPECT_GE(series[0][0]->seconds, 3e-3);
  EXPECT_GE(series[0][0]->yardstick, 10);
  EXPECT_LE(series[0][0]->yardstick, 20);
  // Without a repeated sample the two sides differ in every round; a busy machine may repeat some.
  EXPECT_EQ(median_of(series[0], [](const Sample& s) { return s.yardstick; }), 15);
}

TEST(Measure, TheThreadsClockDoesNotCountSleep) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  EXPECT_GE(time(Clock::wall, sleep), 20e-3);
  EXPECT_LT(time(Clock::thread, sleep), 20e-3);
}

TEST(Measure, SlowBaselineIsSampledAtLeastFiveTimes) {
  const auto slow = [] { std::this_thread::sleep_for(std::chrono::milliseconds(101)); };
  const std::vector<Series> series = measure({{slow, Trial::Kind::baseline}}, Clock::wall, [] { return Moment{1, 1}; });
  EXPECT_EQ(std::count_if(series[0].begin(), series[0].end(), [](const auto& s) { return s.has_value(); }), 6);
}

TEST(Measure, GoesOnUntilEnoughRoundsWereQuiet) {
  int tick = 0;
  const auto moments = [&] { return Moment{100, ++tick % 5 == 0 ? 60.0 : 100.0}; };
  const std::vector<Series> series = measure({{[] {}}}, Clock::wall, moments);
  EXPECT_GT(series[0].size(), size_t{kRounds});
  EXPECT_EQ(quiet_rounds(series), kRounds);
  const std::vector<Series> counted = settled(series);
  for (const auto& sample : counted[0]) EXPECT_TRUE(sample->quiet);
}

TEST(Measure, RoundsOfABusyMachineAllCount) {
  const Series series(29, Sample{1, 1, true});
  std::vector<Series> all = {series, series};
  all[0].resize(40, Sample{2, 1, false});
  all[1].resize(40);
  EXPECT_EQ(quiet_rounds(all), 29);
  EXPECT_EQ(settled(all)[0].size(), 40u);
  all[0][30]->quiet = true;
  EXPECT_EQ(settled(all)[0].size(), 30u);
  all[1].assign(40, std::nullopt);  // a slow baseline that no quiet round has
  EXPECT_EQ(settled(all)[0].size(), 40u);
}

TEST(Rates, AreOfQuietRoundsWithAllAndTheBestBeside) {
  std::vector<Series> all = {Series(30, Sample{0.5, 2})};
  all[0].resize(70, Sample{1, 2.5, false});
  all[0].push_back(std::nullopt);
  all[0][69]->seconds = 0.25;
  const Rates rates = rates_of(all, 1e9);
  EXPECT_EQ(rates.rounds, 71);
  EXPECT_EQ(rates.quiet_rounds, 31);  // the round without a sample disturbs nobody
  EXPECT_EQ(rates.ms, 500);
  EXPECT_EQ(rates.gflops, 2);
  EXPECT_EQ(rates.peak_gflops, 2);
  EXPECT_EQ(rates.percent_of_peak, 100);
  EXPECT_EQ(rates.percent_of_peak_all, 40);
  EXPECT_EQ(rates.percent_of_peak_best, 160);
}

}  // namespace
}  // namespace heed::bench
