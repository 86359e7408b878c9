// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that gzip has packed, unpacked as they come. Not for users of lines.h, which does it where it is needed.
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace heed::text {

// Do these first bytes of a file begin a gzip member? Two are enough.
bool is_gzip(std::span<const std::byte> bytes);

class Gunzip {
 public:
  // `name` is what messages call the file.
  explicit Gunzip(std::string name);
  Gunzip(Gunzip&&) noexcept;
  ~Gunzip();

  // Appends to `out` what these packed bytes hold; they may end anywhere. Several members in a row are one text, and
  // zero bytes after the last one are passed over, as gzip does. Throws Error where they are damaged.
  void append(std::span<const std::byte> packed, std::string& out);
  // There are no more packed bytes. Throws Error where the text is not complete.
  void finish() const;

 private:
  struct Stream;
  std::string name_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace heed::text
