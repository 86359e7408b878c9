#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "heed/base/error.h"

namespace heed::cli {
namespace {

[[noreturn]] void fail() { throw Error(std::string("standard output: cannot write: ") + std::strerror(errno)); }

}  // namespace

void write_output(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail();
}

void flush_output() {
  if (std::fflush(stdout) != 0) fail();
}

}  // namespace heed::cli
