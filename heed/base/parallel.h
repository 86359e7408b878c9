// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel: a small thread pool that is passed in, never global. The calling thread works too, so Parallel(1) starts
// no thread at all. Tasks are handed out in order of their index, each to whoever is free: results must not depend on
// which worker runs a task, only on the task's index.
#include <cstdint>
#include <memory>
#include <type_traits>

#include "heed/base/export.h"

namespace heed {

// A borrowed callable: two words, no allocation. It must not outlive what it refers to.
class TaskRef {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, TaskRef>>>
  TaskRef(F&& f)  // NOLINT(google-explicit-constructor, bugprone-forwarding-reference-overload)
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* object, int64_t task, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task, worker);
        }) {}
  void operator()(int64_t task, int worker) const { call_(object_, task, worker); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int);
};

class HEED_API Parallel {
 public:
  // 0: as many as the machine has hardware threads.
  explicit Parallel(int threads = 1);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  int threads() const { return threads_; }

  // Runs body(task, worker) for every task in [0, tasks), worker in [0, threads()), and returns when all are done.
  // The body must not throw. A call from inside a body runs on the calling thread alone, as worker 0 of its own loop.
  // Calls from several outside threads take turns.
  void for_each(int64_t tasks, TaskRef body) noexcept;

 private:
  struct Pool;
  int threads_;
  std::unique_ptr<Pool> pool_;
};

// How far a task has come, for later tasks of the same for_each that must not overtake it. Tasks start in order, so the
// first one that is not finished waits for nobody, and waiting for an *earlier* task always ends.
class HEED_API Progress {
 public:
  void reach(int64_t step) noexcept;           // what this task wrote before is seen by those who wait for this step
  void wait_for(int64_t step) const noexcept;  // until another task has reached it

 private:
  alignas(64) int64_t step_ = 0;  // a cache line of its own
};

}  // namespace heed
