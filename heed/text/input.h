// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes of a file, a pipe or standard input as they come, unpacked where gzip has packed them. Not for users of
// lines.h.
#include <optional>
#include <string>
#include <string_view>

#include "heed/text/gzip.h"

namespace heed::text {

class Input {
 public:
  // "-" and "/dev/stdin" are standard input. Throws Error where it cannot be opened.
  explicit Input(const std::string& path);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input();

  const std::string& name() const { return name_; }
  bool at_end() const { return at_end_; }
  // Appends what comes next. False: the end has come, or nothing is there without waiting.
  bool read(std::string& out, bool wait);

 private:
  [[noreturn]] void fail(const char* doing) const;
  bool is_ready() const;
  std::string_view next_piece();
  void take(std::string_view piece, std::string& out);

  std::string name_, piece_, head_;
  int descriptor_;
  bool at_end_ = false, is_decided_ = false;  // whether it is packed
  std::optional<Gunzip> gunzip_;
};

}  // namespace heed::text
