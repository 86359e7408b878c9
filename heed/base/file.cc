// SPDX-License-Identifier: Apache-2.0
#include "heed/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "heed/base/error.h"

namespace heed {
namespace {

// "model.safetensors: cannot open: No such file or directory"
[[noreturn]] void fail_with(int error, const std::string& path, const char* doing) {
  throw Error(path + ": cannot " + doing + ": " + std::generic_category().message(error));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC)) {
    if (value_ < 0) fail_with(errno, path, "open");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(value_); }
  operator int() const { return value_; }  // NOLINT(google-explicit-constructor): it is what the system calls take

 private:
  int value_;
};

struct stat status_of(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_with(errno, path, "look at");
  return status;
}

void check_regular(const struct stat& status, const std::string& path) {
  const mode_t mode = status.st_mode;
  if (S_ISREG(mode)) return;
  throw Error(path + ": is " +
              (S_ISDIR(mode)    ? "a folder"
               : S_ISFIFO(mode) ? "a pipe"
                                : "no regular file") +
              ", expected a regular file");
}

// Until there are bytes, or the end. A pipe that was opened without waiting for its writer has neither before one came.
void wait_for_bytes(int descriptor, const std::string& path, const std::function<void()>& waiting) {
  constexpr int kMilliseconds = 100;
  for (;;) {
    struct pollfd wanted {
      .fd = descriptor, .events = POLLIN, .revents = 0
    };
    const int ready = ::poll(&wanted, 1, waiting ? kMilliseconds : -1);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail_with(errno, path, "wait for");
    if (waiting) waiting();
  }
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with(errno, path, "write");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

// Without it a rename may be undone by a power cut. Some file systems cannot sync a folder, and say EINVAL.
void sync_folder(const std::string& folder) {
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (::fsync(descriptor) != 0 && errno != EINVAL) fail_with(errno, folder, "sync the folder");
}

}  // namespace

void check_regular(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) check_regular(status, path);
}

std::vector<std::byte> read_file(const std::string& path, uint64_t limit) {
  constexpr size_t kStep = size_t{1} << 16;
  const Descriptor descriptor(path, O_RDONLY);
  const auto known = static_cast<uint64_t>(std::max<off_t>(status_of(descriptor, path).st_size, 0));
  std::vector<std::byte> bytes;
  size_t used = 0;
  while (used <= limit && known <= limit) {
    // One byte more than is known, so that the end is seen without growing.
    if (used == bytes.size()) bytes.resize(std::max<size_t>(used == 0 ? known + 1 : 0, used + kStep));
    const ssize_t got = ::read(descriptor, bytes.data() + used, bytes.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with(errno, path, "read");
    if (got == 0) {
      bytes.resize(used);
      return bytes;
    }
    used += static_cast<size_t>(got);
  }
  throw Error(path + ": has at least " + std::to_string(std::max<uint64_t>(used, known)) + " bytes, expected at most " +
              std::to_string(limit));
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor descriptor(path, O_RDONLY | O_NONBLOCK);  // a pipe is found out, and not waited for
  const struct stat status = status_of(descriptor, path);
  check_regular(status, path);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // nothing can be mapped
  void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) fail_with(errno, path, "map");
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::forget(std::span<const std::byte> part) const noexcept {
  if (part.empty()) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), first = static_cast<size_t>(part.data() - data_);
  const size_t begin = (first + page - 1) / page * page,
               end = (first + part.size()) / page * page;  // whole pages alone
  if (begin < end) ::madvise(const_cast<std::byte*>(data_ + begin), end - begin, MADV_DONTNEED);
}

SpillFile::SpillFile() {
  const char* chosen = std::getenv("TMPDIR");
  folder_ = chosen && *chosen ? chosen : "/tmp";
  std::string name = folder_ + "/heed.XXXXXX";
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) fail_with(errno, folder_, "make a temporary file in the folder");
  ::unlink(name.c_str());
}

SpillFile::~SpillFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SpillFile::append(std::span<const std::byte> bytes) {
  write_all(descriptor_, bytes, folder_ + " (for temporary files)");
  size_ += bytes.size();
}

std::span<const std::byte> SpillFile::map() {
  if (size_ == 0) return {};
  void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (data == MAP_FAILED) fail_with(errno, folder_, "map a temporary file in the folder");
  data_ = static_cast<const std::byte*>(data);
  return {data_, size_};
}

ReadableFile::ReadableFile(const std::string& path, const std::function<void()>& waiting) : path_(path) {
  const Descriptor descriptor(path, O_RDONLY | O_NONBLOCK);
  const struct stat status = status_of(descriptor, path);
  if (S_ISDIR(status.st_mode)) fail_with(EISDIR, path, "read");
  if (S_ISREG(status.st_mode)) {
    mapped_ = std::make_unique<MappedFile>(path);
    bytes_ = mapped_->bytes();
    return;
  }
  copied_ = std::make_unique<SpillFile>();
  std::vector<std::byte> piece(size_t{1} << 20);
  for (;;) {
    wait_for_bytes(descriptor, path, waiting);
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) fail_with(errno, path, "read");
    if (got == 0) break;
    copied_->append(std::span(piece).first(static_cast<size_t>(got)));
  }
  bytes_ = copied_->map();
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  // A name that no other process has; files left by a killed one and writers in this one are stepped over.
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = path + std::string(kUnfinished) + std::to_string(::getpid()) + "." + std::to_string(attempt);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) fail_with(errno, path, "create");
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) { write_all(descriptor_, bytes, path_); }

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail_with(errno, path_, "sync");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with(errno, path_, "close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with(errno, path_, "rename to");
  temporary_.clear();
  sync_folder(folder_of(path_));
}

void write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.append(bytes);
  file.commit();
}

}  // namespace heed
