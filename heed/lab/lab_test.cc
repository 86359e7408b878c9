// SPDX-License-Identifier: Apache-2.0
// The frame of experiments: spreads, tables, verdicts, files; and that every experiment is described.
#include <gtest/gtest.h>

#include <set>

#include "heed/base/error.h"
#include "heed/lab/experiments.h"
#include "heed/lab/report.h"
#include "heed/lab/training.h"

namespace heed::lab {
namespace {

Result one_of_two(Context& context) {
  context.expect(2);
  context.step(2);
  Result result;
  result.findings = {{true, "1 < 2"}, {false, "3 < 2"}};
  result.tables = {{.title = "Numbers", .columns = {"n", "square"}, .rows = {{"10", "100"}, {"2", "4"}}}};
  result.plots = {{.title = "Squares", .x = {"n"}, .y = {"square"}, .series = {{"all", {point(2, 4.0)}}}}};
  return result;
}

Experiment squares() {
  return {.name = "squares", .claim = "c", .method = "m", .tests = {"first", "second"}, .run = one_of_two};
}

TEST(Lab, SaysWhichTestsHeld) {
  Parallel parallel(1);
  int64_t done = 0;
  Context context({.quick = true, .seed = 5}, parallel, [&](int64_t steps, int64_t all) { done = 10 * steps + all; });
  const Experiment experiment = squares();
  const Report report{experiment, {.quick = true, .seed = 5}, lab::run(experiment, context)};
  EXPECT_EQ(done, 22);  // 2 of 2
  EXPECT_EQ(context.seeds().size(), 1U);
  EXPECT_FALSE(held(report.result));
  EXPECT_EQ(verdict(report), "squares: the claim did not hold, 1 of 2 tests (a quick run: small, one seed)");
  EXPECT_EQ(introduction(experiment), "squares: c\nm\ntest 1: first\ntest 2: second\n");
  EXPECT_EQ(findings_text(report), "test 1 held: 1 < 2\ntest 2 did not hold: 3 < 2\n" + verdict(report) + "\n");
  EXPECT_EQ(to_text(report.result.tables[0]), "Numbers\nn   square\n10  100\n2   4\n");
}

TEST(Lab, WantsAFindingForEachTest) {
  Parallel parallel(1);
  Context context({}, parallel);
  EXPECT_EQ(context.seeds().size(), 3U);
  Experiment experiment = squares();
  experiment.tests.pop_back();
  try {
    run(experiment, context);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "experiment 'squares' has 2 findings, expected 1, one for each test");
  }
}

TEST(Lab, ShowsNumbersWithTheirSpread) {
  const std::vector<double> values{0.25, 0.5, 0.75};
  EXPECT_EQ(shown(spread_of(values)), "0.5 (0.25 to 0.75)");
  EXPECT_EQ(percent(Spread{0.5, 0.5, 0.5}), "50.0 %");
  EXPECT_EQ(shown(1234567), "1.23e+06");
}

TEST(Lab, ItsExperimentsAreDescribed) {
  std::set<std::string> names;
  for (const Experiment& one : experiments()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_TRUE(one.claim.ends_with(".")) << one.name;
    EXPECT_TRUE(one.method.ends_with(".")) << one.name;
    EXPECT_FALSE(one.tests.empty()) << one.name;
  }
  EXPECT_EQ(experiment_named("scale").name, "scale");
  EXPECT_THROW(experiment_named("scael"), Error);
}

// What is drawn for training depends on its number alone, and is never tested with.
TEST(Lab, DrawsBatchesByTheirNumber) {
  const Draw draw = [](Rng& rng) {
    data::TokenPair pair;
    for (int i = 0; i < 20; ++i) pair.source.push_back(kFirstId + static_cast<int32_t>(rng.below(1000)));
    pair.target = pair.source;
    return pair;
  };
  const DrawnBatches batches(draw, 3, 7);
  const data::Batch first = batches.at(0, 0), other = batches.at(0, 1);
  EXPECT_EQ(first.rows, 3);
  EXPECT_EQ(first.source, DrawnBatches(draw, 3, 7).at(0, 0).source);
  EXPECT_NE(first.source, other.source);
  EXPECT_NE(std::vector<int32_t>(first.source.begin(), first.source.begin() + 20), held_out(draw, 1, 7)[0].source);
}

}  // namespace
}  // namespace heed::lab
