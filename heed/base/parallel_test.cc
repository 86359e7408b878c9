// SPDX-License-Identifier: Apache-2.0
#include "heed/base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "heed/base/error.h"

namespace heed {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// One flag a worker: a body that finds its own raised shares its index with another that is running.
class WorkerFlags {
 public:
  explicit WorkerFlags(int workers) : busy_(static_cast<size_t>(workers)) {}
  void enter(int worker) {
    const bool in_range = worker >= 0 && worker < static_cast<int>(busy_.size());
    if (!in_range || busy_[static_cast<size_t>(worker)].exchange(true)) ++violations_;
  }
  void leave(int worker) { busy_.at(static_cast<size_t>(worker)) = false; }
  int violations() const { return violations_; }

 private:
  std::vector<std::atomic<bool>> busy_;
  std::atomic<int> violations_ = 0;
};

// Runs one task for each thread, in which each waits for all others: true if all of them ran at the same time.
bool all_threads_meet(Parallel& parallel) {
  const int threads = parallel.threads();
  std::atomic<int> arrived = 0, met = 0;
  const auto deadline = steady_clock::now() + std::chrono::seconds(20);
  parallel.for_each(threads, [&](int64_t, int) {
    ++arrived;
    while (arrived < threads && steady_clock::now() < deadline) std::this_thread::yield();
    if (arrived == threads) ++met;
  });
  return met == threads;
}

TEST(Parallel, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 4, 5, 8}) {
    Parallel parallel(threads);
    ASSERT_EQ(parallel.threads(), threads);
    for (int64_t tasks : {0, 1, 2, 3, 4, 5, 7, 8, 9, 64, 1000, 10007}) {
      std::vector<int> runs(static_cast<size_t>(tasks));  // plain: each element belongs to one task
      WorkerFlags flags(threads);
      parallel.for_each(tasks, [&](int64_t task, int worker) {
        flags.enter(worker);
        ++runs.at(static_cast<size_t>(task));
        flags.leave(worker);
      });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(tasks), 1)) << threads << " threads, " << tasks << " tasks";
      EXPECT_EQ(flags.violations(), 0) << threads << " threads, " << tasks << " tasks";
    }
  }
}

TEST(Parallel, WorkersRunAtTheSameTimeUnderDifferentIndices) {
  for (int threads : {1, 2, 3, 5}) {
    Parallel parallel(threads);
    for (int call = 0; call < 20; ++call) EXPECT_TRUE(all_threads_meet(parallel)) << threads << " threads";
    WorkerFlags flags(threads);
    parallel.for_each(200, [&](int64_t, int worker) {
      flags.enter(worker);
      std::this_thread::yield();
      flags.leave(worker);
    });
    EXPECT_EQ(flags.violations(), 0);
  }
}

TEST(Parallel, OneThreadRunsInOrderOnTheCaller) {
  Parallel parallel;
  EXPECT_EQ(parallel.threads(), 1);
  std::vector<int64_t> order;
  parallel.for_each(5, [&](int64_t task, int worker) {
    EXPECT_EQ(worker, 0);
    order.push_back(task);
  });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(Parallel, HandsOutTasksInOrder) {
  Parallel parallel(3);
  std::vector<std::vector<int64_t>> seen(3);
  parallel.for_each(5000, [&](int64_t task, int worker) { seen[static_cast<size_t>(worker)].push_back(task); });
  for (const auto& tasks : seen) EXPECT_TRUE(std::is_sorted(tasks.begin(), tasks.end()));
}

TEST(Parallel, ManyTinyCallsInARow) {
  for (int threads : {2, 5}) {
    Parallel parallel(threads);
    int64_t wrong = 0;
    for (int call = 0; call < 10'000; ++call) {
      // Freed right after the call, so that a worker still at it would be caught by the sanitizers.
      const auto sums = std::make_unique<std::atomic<int64_t>[]>(2);
      parallel.for_each(2 + call % 5, [&](int64_t task, int) {
        sums[0] += 1;
        sums[1] += task;
      });
      const int64_t tasks = 2 + call % 5;
      wrong += sums[0] != tasks || sums[1] != tasks * (tasks - 1) / 2;
    }
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(Parallel, CallsAfterASleepFindTheWorkers) {
  Parallel parallel(3);
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(milliseconds(2));
    EXPECT_TRUE(all_threads_meet(parallel));
  }
}

TEST(Parallel, TheCallerSleepsUntilASlowWorkerIsDone) {
  Parallel parallel(2);
  for (int call = 0; call < 5; ++call) {
    std::atomic<int> arrived = 0;
    std::vector<int> finished(2);
    parallel.for_each(2, [&](int64_t task, int worker) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
      if (worker == 1) std::this_thread::sleep_for(milliseconds(5));
      finished[static_cast<size_t>(task)] = 1;
    });
    EXPECT_EQ(finished, std::vector<int>(2, 1));
  }
}

TEST(Parallel, NestedCallsRunOnTheCallingThreadAlone) {
  Parallel other(2);
  for (int threads : {1, 3}) {
    Parallel parallel(threads);
    for (int64_t outer : {1, 8}) {
      std::atomic<int> runs = 0, elsewhere = 0;
      parallel.for_each(outer, [&](int64_t, int) {
        const auto self = std::this_thread::get_id();
        for (Parallel* pool : {&parallel, &other, &parallel}) {
          int64_t expected = 0;
          pool->for_each(5, [&](int64_t task, int worker) {
            ++runs;
            if (task != expected++ || worker != 0 || std::this_thread::get_id() != self) ++elsewhere;
          });
        }
      });
      EXPECT_EQ(runs, outer * 15);
      EXPECT_EQ(elsewhere, 0);
    }
    EXPECT_TRUE(all_threads_meet(parallel)) << "after nested calls";
  }
}

TEST(Parallel, OutsideThreadsTakeTurns) {
  constexpr int kCallers = 4, kCalls = 200;
  for (int threads : {1, 2, 3}) {
    Parallel parallel(threads);
    WorkerFlags flags(threads);
    std::vector<std::atomic<int>> inside(kCallers);
    std::atomic<int> overlaps = 0, runs = 0;
    const auto call = [&](size_t caller) {
      for (int i = 0; i < kCalls; ++i) {
        parallel.for_each(1 + i % 7, [&](int64_t, int worker) {
          flags.enter(worker);
          ++inside[caller];
          for (size_t c = 0; c < kCallers; ++c) overlaps += c != caller && inside[c] != 0;
          ++runs;
          --inside[caller];
          flags.leave(worker);
        });
      }
    };
    std::vector<std::thread> callers;
    for (size_t caller = 0; caller < kCallers; ++caller) callers.emplace_back(call, caller);
    for (std::thread& caller : callers) caller.join();
    int expected = 0;
    for (int i = 0; i < kCalls; ++i) expected += kCallers * (1 + i % 7);
    EXPECT_EQ(runs, expected);
    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(flags.violations(), 0);
  }
}

TEST(Parallel, TakesConstAndMutableCallables) {
  Parallel parallel(1);
  int64_t sum = 0;
  const auto constant = [&sum](int64_t task, int) { sum += task; };
  parallel.for_each(4, constant);
  EXPECT_EQ(sum, 6);
  auto counting = [count = 0](int64_t, int) mutable { return ++count; };
  parallel.for_each(4, counting);
  EXPECT_EQ(counting(0, 0), 5);  // it was borrowed, not copied
}

TEST(Parallel, PoolsComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    Parallel parallel(1 + i % 4);
    if (i % 2 == 0) continue;  // destroyed while its workers are still starting
    std::atomic<int> runs = 0;
    parallel.for_each(3, [&](int64_t, int) { ++runs; });
    EXPECT_EQ(runs, 3);
  }
}

TEST(Parallel, ZeroMeansAllHardwareThreads) {
  const Parallel parallel(0);
  EXPECT_GE(parallel.threads(), 1);
  EXPECT_EQ(parallel.threads(), std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

TEST(Parallel, NegativeThreadsAreAnError) {
  try {
    Parallel parallel(-1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "parallel: threads is -1, expected 0 (all) or more");
  }
}

TEST(Parallel, AnIdlePoolUsesNoCpu) {
  for (int threads : {2, 5}) {
    Parallel parallel(threads);
    for (int call = 0; call < 100; ++call) parallel.for_each(threads, [](int64_t, int) {});
    const std::clock_t before = std::clock();  // the CPU time of all threads of the process
    std::this_thread::sleep_for(milliseconds(200));
    const double used_ms = 1000.0 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    EXPECT_LT(used_ms, 50) << threads << " threads";
  }
}

// Each task appends to every slot in turn, after the task before it: the order is that of the tasks, whoever runs them.
TEST(Progress, KeepsTasksInOrder) {
  constexpr int64_t kTasks = 12, kSlots = 50;
  for (int threads : {1, 2, 3, 5}) {
    Parallel parallel(threads);
    std::vector<Progress> progress(kTasks);
    std::vector<std::vector<int64_t>> slots(kSlots);
    parallel.for_each(kTasks, [&](int64_t task, int) {
      for (int64_t slot = 0; slot < kSlots; ++slot) {
        if (task > 0) progress[task - 1].wait_for(slot + 1);
        slots[slot].push_back(task);
        progress[task].reach(slot + 1);
      }
    });
    for (const auto& order : slots) {
      ASSERT_EQ(order.size(), size_t{kTasks});
      for (int64_t task = 0; task < kTasks; ++task) EXPECT_EQ(order[task], task);
    }
  }
}

}  // namespace
}  // namespace heed
