#include "cli/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/output.h"
#include "heed/base/error.h"

namespace heed::cli {

LineReader::LineReader(const std::string& file) : name_(file.empty() ? "standard input" : file) {
  if (file.empty()) return;
  descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw Error(name_ + ": cannot read: " + std::strerror(errno));
}

LineReader::~LineReader() {
  if (descriptor_ > 0) ::close(descriptor_);
}

bool LineReader::fill(bool wait) {
  if (at_end_) return false;
  if (!wait) {
    pollfd what{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (::poll(&what, 1, 0) <= 0) return false;
  }
  buffer_.erase(0, std::exchange(begin_, 0));
  constexpr size_t kPiece = size_t{1} << 16;
  const size_t used = buffer_.size();
  buffer_.resize(used + kPiece);
  ssize_t got = 0;
  do got = ::read(descriptor_, buffer_.data() + used, kPiece);
  while (got < 0 && errno == EINTR);
  buffer_.resize(used + static_cast<size_t>(got > 0 ? got : 0));
  if (got < 0) throw Error(name_ + ": cannot read: " + std::strerror(errno));
  at_end_ = got == 0;
  return !at_end_;
}

bool LineReader::take_line(std::string& line) {
  const size_t end = buffer_.find('\n', begin_);
  if (end == std::string::npos && (!at_end_ || begin_ == buffer_.size())) return false;
  line = buffer_.substr(begin_, end == std::string::npos ? end : end - begin_);
  begin_ = end == std::string::npos ? buffer_.size() : end + 1;
  if (line.ends_with('\r')) line.pop_back();
  constexpr std::string_view kByteOrderMark = "\uFEFF";
  if (std::exchange(first_, false) && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

std::vector<std::string> LineReader::next(size_t most) {
  taken_ += std::exchange(given_, 0);
  std::vector<std::string> lines;
  for (std::string line; lines.size() < most;) {
    if (take_line(line)) {
      lines.push_back(std::move(line));
    } else if (!fill(lines.empty()) && (!at_end_ || begin_ == buffer_.size())) {
      break;
    }
  }
  given_ = std::ssize(lines);
  return lines;
}

std::string LineReader::place(size_t i) const {
  return name_ + ":" + std::to_string(taken_ + static_cast<int64_t>(i) + 1);
}

void for_each_chunk(const std::vector<std::string>& files, size_t most,
                    const std::function<void(const std::string&)>& check,
                    const std::function<void(const Lines&)>& run) {
  const auto read = [&](const std::string& file) {
    LineReader reader(file);
    for (Lines lines = reader.next(most); !lines.empty(); lines = reader.next(most)) {
      std::string wrong;
      size_t good = 0;
      while (good < lines.size() && wrong.empty()) {
        try {
          check(lines[good]);
          ++good;
        } catch (const Error& error) {
          wrong = reader.place(good) + ": " + error.what();
        }
      }
      lines.resize(good);
      if (!lines.empty()) run(lines);
      if (!wrong.empty()) throw Error(wrong);
    }
  };
  if (files.empty()) read("");
  for (const std::string& file : files) read(file);
}

void InOrder::add(size_t item, std::string text) {
  waiting_.emplace(item, std::move(text));
  bool wrote = false;
  for (auto next = waiting_.begin(); next != waiting_.end() && next->first == next_; next = waiting_.begin()) {
    write_output(next->second);
    waiting_.erase(next);
    ++next_;
    wrote = true;
  }
  if (wrote) flush_output();
}

}  // namespace heed::cli
