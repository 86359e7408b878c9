// SPDX-License-Identifier: Apache-2.0
#include "heed/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/unique.h"

namespace heed {
namespace {

// How long a thread looks for work, or for the end of it, before it sleeps: longer than the gap between two kernels of
// one model, too short to be seen as load.
constexpr auto kSpinTime = std::chrono::microseconds(50);
constexpr size_t kCacheLine = 64;

// Whether this thread is inside a body, of any pool: there a further call runs inline.
thread_local bool inside_body = false;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int hardware_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

// A call is open while it has tasks to hand out. Workers that notice join it, and whoever finds no task left closes it;
// the caller then waits for those that joined, never for one that was slow to wake. A call is thus finished even if
// no worker gets a core, and threads beyond the cores cost little.
struct Parallel::Pool {
  ~Pool();
  void start(int threads);
  void run(int64_t tasks, const TaskRef& body);

 private:
  void work(int worker);
  bool await_call();
  bool join();
  void leave();
  void take_tasks(int worker);
  void await_workers();
  template <class Ready>
  bool spin_until(Ready ready) const;

  // state_: the number of workers inside the call, and two flags.
  static constexpr uint32_t kOpen = 1u << 31, kCallerSleeps = 1u << 30, kWorkers = kCallerSleeps - 1;

  alignas(kCacheLine) std::atomic<int64_t> next_task_ = 0;
  alignas(kCacheLine) std::atomic<uint32_t> state_ = 0;
  // Written only while no worker is inside, and published by opening the call.
  const TaskRef* body_ = nullptr;
  int64_t tasks_ = 0;

  alignas(kCacheLine) std::mutex sleep_mutex_;  // guards the next three, and calls are opened under it
  int64_t calls_ = 0, sleepers_ = 0;
  bool stopping_ = false;
  std::condition_variable call_opened_, workers_left_;

  std::vector<std::thread> workers_;
  bool spins_ = false;

 public:
  std::mutex callers;  // held through a call, so that outside threads take turns
};

Parallel::Pool::~Pool() {
  {
    const std::lock_guard lock(sleep_mutex_);
    stopping_ = true;
  }
  call_opened_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Parallel::Pool::start(int threads) {
  spins_ = threads <= hardware_threads();  // or a spinning thread would keep the core from one with work
  workers_.reserve(static_cast<size_t>(threads - 1));
  for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { work(worker); });
}

void Parallel::Pool::run(int64_t tasks, const TaskRef& body) {
  body_ = &body;
  tasks_ = tasks;
  next_task_.store(0, std::memory_order_relaxed);
  int64_t asleep = 0;
  {
    const std::lock_guard lock(sleep_mutex_);
    ++calls_;
    state_.store(kOpen, std::memory_order_release);
    asleep = sleepers_;
  }
  if (asleep <= tasks - 1) {
    if (asleep > 0) call_opened_.notify_all();
  } else {
    for (int64_t i = 0; i < tasks - 1; ++i) call_opened_.notify_one();
  }
  take_tasks(0);
  await_workers();
}

void Parallel::Pool::work(int worker) {
  inside_body = true;
  while (await_call()) {
    if (!join()) continue;
    take_tasks(worker);
    leave();
  }
}

// True when a call may be open, false when the pool is being destroyed.
bool Parallel::Pool::await_call() {
  const auto is_open = [this] { return (state_.load(std::memory_order_relaxed) & kOpen) != 0; };
  if (spin_until(is_open)) return true;
  std::unique_lock lock(sleep_mutex_);
  if (!is_open()) {
    // Any new call ends the sleep, even one already over: where one came, spinning for the next is worth it.
    ++sleepers_;
    call_opened_.wait(lock, [this, seen = calls_] { return calls_ != seen || stopping_; });
    --sleepers_;
  }
  return !stopping_;
}

bool Parallel::Pool::join() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  while (state & kOpen) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void Parallel::Pool::leave() {
  const uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kWorkers) != 1 || !(before & kCallerSleeps)) return;
  // Through the mutex: the caller looks at the state under it, so it is not missed between its look and its sleep.
  { const std::lock_guard lock(sleep_mutex_); }
  workers_left_.notify_one();
}

void Parallel::Pool::take_tasks(int worker) {
  const TaskRef body = *body_;
  const int64_t tasks = tasks_;
  for (;;) {
    const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks) break;
    body(task, worker);
  }
  state_.fetch_and(~kOpen, std::memory_order_relaxed);
}

void Parallel::Pool::await_workers() {
  const auto none_inside = [this] { return (state_.load(std::memory_order_acquire) & kWorkers) == 0; };
  if (spin_until(none_inside)) return;
  std::unique_lock lock(sleep_mutex_);
  state_.fetch_or(kCallerSleeps, std::memory_order_acq_rel);
  workers_left_.wait(lock, none_inside);
}

template <class Ready>
bool Parallel::Pool::spin_until(Ready ready) const {
  if (ready()) return true;
  if (!spins_) return false;
  constexpr int kLooks = 16;
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kLooks; ++i) {
      pause_briefly();
      if (ready()) return true;
    }
    // Where the machine is busy, the thread that is waited for may be queued for this very core.
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

Parallel::Parallel(int threads) : threads_(threads == 0 ? hardware_threads() : threads), pool_(new Pool) {
  if (threads < 0) {
    throw Error("parallel: threads is " + std::to_string(threads) + ", expected 0 (all) or more");
  }
  try {
    pool_->start(threads_);
  } catch (const std::system_error&) {
    throw Error("parallel: threads is " + std::to_string(threads_) + ", expected no more than the system can start");
  }
}

Parallel::~Parallel() = default;

void Parallel::for_each(int64_t tasks, TaskRef body) noexcept {
  assert(tasks >= 0);
  if (tasks <= 0) return;
  const auto run_inline = [&] {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
  };
  if (inside_body) return run_inline();
  const std::lock_guard turn(pool_->callers);
  inside_body = true;
  if (threads_ == 1 || tasks == 1) {
    run_inline();
  } else {
    pool_->run(tasks, body);
  }
  inside_body = false;
}

void Progress::reach(int64_t step) noexcept { std::atomic_ref(step_).store(step, std::memory_order_release); }

void Progress::wait_for(int64_t step) const noexcept {
  // atomic_ref takes no const reference before C++26; nothing is written.
  const std::atomic_ref<int64_t> reached(const_cast<int64_t&>(step_));
  for (int tries = 0; reached.load(std::memory_order_acquire) < step; ++tries) {
    if (tries < 64) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
}

uint32_t unique_number() noexcept {
  static std::atomic<uint32_t> last = 0;
  return ++last;
}

}  // namespace heed
