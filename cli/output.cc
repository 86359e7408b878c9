// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

namespace heed::cli {
namespace {

[[noreturn]] void fail() {
  const std::string message = std::string("standard output: cannot write: ") + std::strerror(errno);
  if (errno == EPIPE) throw OutputClosed(message);
  throw Error(message);
}

}  // namespace

void write_output(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void flush_output() {
  if (std::fflush(stdout) != 0) fail();
}

size_t terminal_room() {
  struct winsize size {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::numeric_limits<size_t>::max();
  return size.ws_col - size_t{1};  // a line that fills the last column wraps in some terminals
}

std::string cut_to_terminal(std::string text, size_t room) {
  const size_t columns = terminal_room();
  text.resize(std::min(text.size(), columns > room ? columns - room : size_t{0}));
  return text;
}

}  // namespace heed::cli
