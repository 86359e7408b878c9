// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

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

std::string cut_to_terminal(std::string text, size_t room) {
  struct winsize size {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return text;
  const size_t taken = room + 1;  // a line that fills the last column wraps in some terminals
  text.resize(std::min(text.size(), size.ws_col > taken ? size.ws_col - taken : size_t{0}));
  return text;
}

}  // namespace heed::cli
