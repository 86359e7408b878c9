// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "cli/output.h"

namespace heed::cli {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{200};
constexpr std::chrono::seconds kElsewhere{30};

}  // namespace

Progress::Progress(std::string what, int64_t all)
    : what_(std::move(what)), all_(all), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(int64_t done) {
  const Clock::time_point now = Clock::now();
  if (now - shown_ < (terminal_ ? Clock::duration(kOnTerminal) : Clock::duration(kElsewhere))) return;
  shown_ = now;
  const double rate = static_cast<double>(done) / std::chrono::duration<double>(now - began_).count();
  const std::string text =
      fmt::format("{}{} {}, {:.0f}/s", done, all_ > 0 ? fmt::format(" of {}", all_) : "", what_, rate);
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", cut_to_terminal(text));
    dirty_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void Progress::end() {
  if (!std::exchange(dirty_, false)) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace heed::cli
