// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole files: read, mapped, or written so that a reader sees the old one or the new one and never half of it.
// POSIX only. Errors name the path, what was being done and what the system said.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"

namespace heed {

// Throws Error if something stands under this name that is no regular file, such as a folder, or a pipe that would be
// waited for. What is not there is left to those who open it.
HEED_API void check_regular(const std::string& path);

// All bytes of a file, a pipe included. More than `limit` bytes are an error, and are not read.
HEED_API std::vector<std::byte> read_file(const std::string& path, uint64_t limit);

// A file's bytes, read by the system as they are touched. A later rename over the path does not disturb it; a program
// that shortens the file in place does. Only of regular files.
class HEED_API MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Some of bytes() will not be read again soon: their memory is given back. If they are, they are read anew.
  void forget(std::span<const std::byte> part) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// What the temporary names of unfinished files have in them.
inline constexpr std::string_view kUnfinished = ".tmp.";

// A file that appears under its name only when it is complete and on disk: written under a temporary name in the same
// folder, synced, renamed, and the folder synced. Without commit(), after an error too, the temporary file is removed.
class HEED_API AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void append(std::span<const std::byte> bytes);
  void commit();

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
};

// Bytes that would not fit into memory: appended to a file without a name, in the folder for temporary files, and then
// read where they lie, by the system as they are touched.
class HEED_API SpillFile {
 public:
  SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;
  ~SpillFile();

  void append(std::span<const std::byte> bytes);
  // All of them; nothing is appended after that.
  std::span<const std::byte> map();

 private:
  std::string folder_;
  int descriptor_ = -1;
  size_t size_ = 0;
  const std::byte* data_ = nullptr;
};

// A file that is read more than once: a regular one is mapped; what can be read only once, as a pipe, is copied to a
// temporary file first. While nothing comes from a pipe, not even a writer, `waiting` is called several times a second:
// it may throw, and that is how the wait ends early.
class HEED_API ReadableFile {
 public:
  explicit ReadableFile(const std::string& path, const std::function<void()>& waiting = {});

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::unique_ptr<MappedFile> mapped_;
  std::unique_ptr<SpillFile> copied_;
  std::span<const std::byte> bytes_;
};

HEED_API void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);

}  // namespace heed
