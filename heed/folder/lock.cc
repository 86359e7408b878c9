// SPDX-License-Identifier: Apache-2.0
#include "heed/folder/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "heed/base/error.h"
#include "heed/folder/model_folder.h"

namespace heed::folder {
namespace {

// "process 4711 on host, since 2026-01-31 12:00:00 UTC"
std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  const std::time_t now = std::time(nullptr);
  struct tm parts {};
  std::array<char, 64> clock{};
  ::gmtime_r(&now, &parts);
  std::strftime(clock.data(), clock.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return "process " + std::to_string(::getpid()) + " on " + host.data() + ", since " + clock.data();
}

// What the holder has written; it may be about to.
std::string holder_in(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size() - 1, 0);
  std::string holder(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  for (char& c : holder) c = c >= ' ' && c <= '~' ? c : '?';
  return holder.empty() ? "another process" : holder;
}

// A holder removes the file when it lets go: a lock on a file that has no name any more keeps nobody out.
bool is_named(int descriptor, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

}  // namespace

std::optional<Lock> Lock::try_file(const std::string& path, std::string& holder) {
  Lock lock;
  lock.path_ = path;
  int& descriptor = lock.descriptor_;
  const auto let_go = [&] { ::close(std::exchange(descriptor, -1)); };  // without removing what another one holds
  const auto fail = [&](const char* doing) {
    const int error = errno;
    if (descriptor >= 0) let_go();
    throw Error(path + ": cannot " + doing + ": " + std::generic_category().message(error));
  };
  while (descriptor < 0) {
    descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (descriptor < 0) fail("open");
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) fail("lock");
      holder = holder_in(descriptor);
      let_go();
      return std::nullopt;
    }
    if (!is_named(descriptor, path)) let_go();
  }
  const std::string text = this_process();  // for whoever comes next; the lock does not depend on it
  if (::ftruncate(descriptor, 0) == 0) static_cast<void>(::pwrite(descriptor, text.data(), text.size(), 0) > 0);
  return lock;
}

Lock::Lock(const std::string& folder) {
  std::string holder;
  std::optional<Lock> taken = try_file(Layout(folder).lock(), holder);
  if (!taken)
    throw Error("folder '" + folder + "' is in use by " + holder + ": expected one that nobody else writes to");
  *this = std::move(*taken);
}

Lock::Lock(Lock&& other) noexcept : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Lock& Lock::operator=(Lock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Lock::~Lock() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

}  // namespace heed::folder
