// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text that comes in, wherever it comes from: a file, a pipe, or standard input ("-" or "/dev/stdin"), each of them
// plain or packed by gzip, which its first bytes show. The one place that opens text for reading.
//
//   auto lines = text::open_lines("corpus.txt.gz");
//   for (std::string line; lines.next(line);) ...
//
// A byte order mark at the very beginning and carriage returns before line ends are passed over. Whether the bytes are
// UTF-8 is for others to check (utf8.h).
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/file.h"

namespace heed::text {

HEED_API bool is_standard_input(const std::string& path);
// What messages call it: the path, or "standard input".
HEED_API std::string name_of_input(const std::string& path);

class Input;

// Lines as they come.
class HEED_API LineReader {
 public:
  // Throws Error where it cannot be opened; reading throws Error where that fails, or gzip data is damaged or cut
  // short.
  explicit LineReader(const std::string& path);
  LineReader(LineReader&&) noexcept;
  ~LineReader();

  // Waits for a line. False: the end has come.
  bool next(std::string& line);
  // Waits for one line, and takes up to `most` that are there by then. None: the end has come.
  std::vector<std::string> next(size_t most);
  // "file:3", for line i of those that next() gave last.
  std::string place(size_t i = 0) const;

 private:
  bool take_line(std::string& line, bool wait);  // false: the end, or no whole line is there without waiting

  std::unique_ptr<Input> input_;
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been taken
  bool first_ = true;
  int64_t taken_ = 0, given_ = 0;  // lines before the last next(), and by it
};

HEED_API LineReader open_lines(const std::string& path);

// All of a text, to be gone through as often as is needed: mapped where that can be; what can be read only once, and
// what is unpacked, is copied to a temporary file, so that it may be larger than memory.
class HEED_API TextFile {
 public:
  // `waiting` is called now and then while nothing comes from a pipe, and may throw (base/file.h).
  explicit TextFile(const std::string& path, const std::function<void()>& waiting = {});

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }  // without a byte order mark

 private:
  std::string name_;
  std::unique_ptr<ReadableFile> file_;
  std::unique_ptr<SpillFile> copy_;
  std::string_view text_;
};

// Takes the next line off a text, without its end: false where there is none. A last line needs no end.
HEED_API bool take_line(std::string_view& text, std::string_view& line);

}  // namespace heed::text
