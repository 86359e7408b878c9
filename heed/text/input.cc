// SPDX-License-Identifier: Apache-2.0
#include "heed/text/input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>

#include "heed/base/error.h"
#include "heed/text/lines.h"

namespace heed::text {

Input::Input(const std::string& path) : name_(name_of_input(path)), descriptor_(STDIN_FILENO) {
  if (is_standard_input(path)) return;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail("open");
}

Input::~Input() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

void Input::fail(const char* doing) const {
  throw Error(name_ + ": cannot " + doing + ": " + std::generic_category().message(errno));
}

bool Input::is_ready() const {
  pollfd what{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&what, 1, 0) > 0;
}

// Empty: the end.
std::string_view Input::next_piece() {
  constexpr size_t kBytes = size_t{1} << 16;
  piece_.resize(kBytes);
  ssize_t got = 0;
  do got = ::read(descriptor_, piece_.data(), kBytes);
  while (got < 0 && errno == EINTR);
  if (got < 0) fail("read");
  at_end_ = got == 0;
  return {piece_.data(), static_cast<size_t>(got)};
}

void Input::take(std::string_view piece, std::string& out) {
  if (!is_decided_) {
    constexpr std::string_view kFirstOfGzip = "\x1F";
    head_ += piece;  // a pipe may give its first byte alone
    if (head_ == kFirstOfGzip && !at_end_) return;
    is_decided_ = true;
    if (is_gzip(std::as_bytes(std::span(head_)))) gunzip_.emplace(name_);
    piece = head_;
  }
  if (!gunzip_) {
    out += piece;
    return;
  }
  gunzip_->append(std::as_bytes(std::span(piece)), out);
  if (at_end_) gunzip_->finish();
}

bool Input::read(std::string& out, bool wait) {
  const size_t before = out.size();
  while (out.size() == before && !at_end_) {
    if (!wait && !is_ready()) return false;
    take(next_piece(), out);
  }
  return out.size() > before;
}

}  // namespace heed::text
