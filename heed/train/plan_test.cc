// SPDX-License-Identifier: Apache-2.0
// Steps for minutes: the estimate itself, and runs that follow it.
#include "heed/train/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "heed/base/count.h"
#include "heed/base/file.h"
#include "heed/base/testing.h"
#include "heed/train/testing.h"

namespace heed::train {
namespace {

namespace fs = std::filesystem;
using heed::testing::error_of, heed::testing::text_of;
using testing::Files;

std::string read(const std::string& path) { return text_of(read_file(path, 1 << 28)); }

// The bytes after the header of a safetensors file.
std::string tensors_of(const std::string& path) {
  const std::string file = read(path);
  uint64_t header = 0;
  std::memcpy(&header, file.data(), std::min(file.size(), sizeof(header)));
  return file.substr(std::min<size_t>(file.size(), sizeof(header) + header));
}

TEST(Plan, FillsTheTimeButATwentieth) {
  // 10 minutes: 570 seconds, of which 10 are gone and 2 are for the last look; 550 / (0.5 + 2 / 100) steps are left.
  const Pace pace{.steps = 20, .seconds = 10, .seconds_a_step = 0.5, .seconds_a_look = 2, .steps_between_looks = 100};
  const Plan plan = plan_for(10, 400, pace);
  EXPECT_EQ(plan.steps, 20 + 1073);
  EXPECT_EQ(plan.warmup, 1093 / 5) << "the rate is reached, and falls again";
  EXPECT_EQ(plan_for(10, 100, pace).warmup, 100);
  const Plan late = plan_for(0.1, 400, pace);
  EXPECT_EQ(late.steps, 21) << "there is no time left";
  EXPECT_GT(plan_for(1e12, 400, {.steps = 20}).steps, 1'000'000);
}

TEST(Plan, WaitsUntilThereIsSomethingToMeasure) {
  EXPECT_FALSE(plan_is_due(1, {.steps = 4, .seconds = 30}));
  EXPECT_FALSE(plan_is_due(1, {.steps = 100, .seconds = 1.1}));
  EXPECT_TRUE(plan_is_due(1, {.steps = 5, .seconds = 1.2}));
}

// Stops after so many steps, from the plan on.
struct StopAfterPlan final : Listener {
  explicit StopAfterPlan(int64_t steps) : left(steps) {}
  void told(const std::string& message) override {
    if (message.starts_with("planned for ")) planned = message;
  }
  void stepped(const Progress& p) override {
    if (!planned.empty()) --left;
    last = p;
  }
  bool stop() override { return left <= 0; }
  std::string planned;
  Progress last;
  int64_t left;
};

// Until the plan is done: a busy machine may need more sittings than one.
RunResult to_the_end(const std::string& folder, Parallel& parallel) {
  StopAfterPlan heard(1'000'000'000);
  RunResult result;
  do {
    result = resume(folder, heard, parallel);
  } while (result.why == "out of time");
  EXPECT_EQ(heard.planned, "") << "there was a plan already";
  return result;
}

TEST(Plan, IsMadeOnceAndGoneOnWithToTheSameBits) {
  const Files files;
  Parallel parallel(1);
  RunOptions o = files.options();
  o.train.steps = 0, o.train.warmup = 100'000, o.train.schedule = Schedule::cosine;
  o.loop.minutes = 0.05, o.loop.evaluate_every = 100;
  StopAfterPlan stopping(3);
  const RunResult first = run(o, files.out("m"), stopping, parallel);
  ASSERT_EQ(first.why, "stopped") << "after " << first.steps << " steps";
  ASSERT_NE(stopping.planned, "");
  EXPECT_NE(stopping.planned.find("planned for 0.05 minutes: "), std::string::npos) << stopping.planned;

  fs::copy(files.out("m"), files.out("again"), fs::copy_options::recursive);
  const RunResult whole = to_the_end(files.out("m"), parallel);
  EXPECT_EQ(whole.why, "all steps done");
  EXPECT_GT(whole.steps, first.steps);
  EXPECT_NE(stopping.planned.find(counted(whole.steps, "step")), std::string::npos)
      << stopping.planned << ", and there were " << whole.steps;
  StopAfterPlan soon(1);
  soon.planned = "before";
  EXPECT_EQ(resume(files.out("again"), soon, parallel).why, "stopped");
  const double highest = o.train.rate;
  EXPECT_GT(soon.last.step.rate, 10 * highest * static_cast<double>(soon.last.step.step) / 100'000)
      << "the warm-up follows the plan";
  EXPECT_EQ(to_the_end(files.out("again"), parallel).steps, whole.steps);
  // Without the header: a sitting that is out of time measures the dev set at its end, which the notes in it tell of.
  for (const char* name : {"/checkpoint.safetensors", "/model.safetensors"}) {
    const std::string one = tensors_of(files.out("m") + name), other = tensors_of(files.out("again") + name);
    EXPECT_GT(one.size(), 1000) << name;
    EXPECT_TRUE(one == other) << name;
  }
}

TEST(Plan, ANumberOfStepsStaysOne) {
  const Files files;
  Parallel parallel(1);
  StopAfterPlan heard(1'000'000'000);
  RunOptions o = files.options();
  o.train.steps = 7, o.loop.minutes = 60;
  const RunResult both = run(o, files.out("both"), heard, parallel);
  EXPECT_EQ(both.why, "all steps done");
  EXPECT_EQ(both.steps, 7);
  EXPECT_EQ(heard.planned, "");
  o.train.steps = 0, o.loop.minutes = 0;
  heard.left = 2, heard.planned = "none is wanted";
  run(o, files.out("neither"), heard, parallel);
  EXPECT_EQ(options_of(files.out("neither")).train.steps, 2000) << "what was chosen is written";
}

// More minutes for a run that has used up its own: a new plan, from where it is.
TEST(Plan, OtherMinutesAreAnotherPlan) {
  const Files files;
  Parallel parallel(1);
  Listener listener;
  RunOptions o = files.options();
  o.train.steps = 0, o.loop.minutes = 0.02;
  const RunResult first = run(o, files.out("m"), listener, parallel);
  o = options_of(files.out("m"));
  o.loop.minutes = 0.021;
  EXPECT_GT(resume(files.out("m"), o, listener, parallel).steps, first.steps);
  o.loop.minutes = 0;
  EXPECT_EQ(error_of([&] { resume(files.out("m"), o, listener, parallel); }),
            "train: steps and minutes are 0, expected a number of one of them");
  EXPECT_EQ(resume(files.out("m"), testing::with_steps(files.out("m"), 1'000'000), listener, parallel).why,
            "out of time");
}

}  // namespace
}  // namespace heed::train
