// SPDX-License-Identifier: Apache-2.0
#include "cli/elapsed.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "cli/output.h"

namespace heed::cli {
namespace {

// What the handler reads.
const std::string* shown = nullptr;
bool in_place = false;
volatile sig_atomic_t seconds = 0;
int first = 1, every = 1;  // seconds until the first line, and from line to line

void put(const char* text, size_t size) {
  // Nothing can be done here about a write that fails; whoever prints next finds out.
  if (::write(STDERR_FILENO, text, size) < 0) return;
}

// Only calls that a handler may make.
void show(int) {
  const int error = errno;
  seconds = seconds + (seconds == 0 ? first : every);
  char digits[12];
  size_t begin = sizeof digits;
  for (int left = seconds; left > 0 || begin == sizeof digits; left /= 10) {
    digits[--begin] = static_cast<char>('0' + left % 10);
  }
  if (in_place) put("\r\x1b[K", 4);
  put(shown->data(), shown->size());
  put(": ", 2);
  put(digits + begin, sizeof digits - begin);
  put(" s\n", in_place ? 2 : 3);
  errno = error;
}

void set_timer(int value, int interval) {
  struct itimerval timer {};
  timer.it_value.tv_sec = value, timer.it_interval.tv_sec = interval;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

Elapsed::Elapsed(std::string what, bool terminal)
    : what_(terminal ? cut_to_terminal(std::move(what), 8) : std::move(what)), terminal_(terminal) {
  shown = &what_, in_place = terminal, first = terminal ? 1 : 2, every = terminal ? 1 : 10;
  seconds = 0;
  struct sigaction action {};
  action.sa_handler = show;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGALRM, &action, nullptr);
  set_timer(first, every);
}

Elapsed::~Elapsed() {
  set_timer(0, 0);
  ::signal(SIGALRM, SIG_IGN);
  if (terminal_ && seconds > 0) put("\r\x1b[K", 4);
}

}  // namespace heed::cli
