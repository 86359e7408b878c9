// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far long work has come, on standard error: on a terminal a line that is written over, elsewhere a line now and
// then.
#include <chrono>
#include <cstdint>
#include <string>

namespace heed::cli {

class Progress {
 public:
  // Of what, as "lines"; and how many there are, where that is known.
  explicit Progress(std::string what, int64_t all = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { end(); }

  void show(int64_t done);
  // Leaves a clean line behind.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  const std::string what_;
  const int64_t all_;
  const bool terminal_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point shown_ = began_;
  bool dirty_ = false;
};

}  // namespace heed::cli
