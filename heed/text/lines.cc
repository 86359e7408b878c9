// SPDX-License-Identifier: Apache-2.0
#include "heed/text/lines.h"

#include <utility>

#include "heed/text/gzip.h"
#include "heed/text/input.h"

namespace heed::text {
namespace {

constexpr std::string_view kByteOrderMark = "\uFEFF";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A copy of all that comes.
std::unique_ptr<SpillFile> spill(Input& input) {
  auto copy = std::make_unique<SpillFile>();
  for (std::string piece; input.read(piece, true); piece.clear()) copy->append(std::as_bytes(std::span(piece)));
  return copy;
}

std::unique_ptr<SpillFile> unpacked(std::span<const std::byte> packed, const std::string& name) {
  constexpr size_t kAtATime = size_t{1} << 16;
  auto copy = std::make_unique<SpillFile>();
  Gunzip gunzip(name);
  for (std::string piece; !packed.empty(); piece.clear()) {
    const size_t some = std::min(kAtATime, packed.size());
    gunzip.append(packed.first(some), piece);
    copy->append(std::as_bytes(std::span(piece)));
    packed = packed.subspan(some);
  }
  gunzip.finish();
  return copy;
}

}  // namespace

bool is_standard_input(const std::string& path) { return path == "-" || path == "/dev/stdin"; }

std::string name_of_input(const std::string& path) { return is_standard_input(path) ? "standard input" : path; }

LineReader::LineReader(const std::string& path) : input_(std::make_unique<Input>(path)) {}
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

bool LineReader::take_line(std::string& line, bool wait) {
  size_t end = buffer_.find('\n', begin_);
  while (end == std::string::npos) {
    buffer_.erase(0, std::exchange(begin_, 0));
    const size_t before = buffer_.size();
    if (!input_->read(buffer_, wait)) {
      if (!input_->at_end()) return false;
      if (first_ && buffer_ == kByteOrderMark) buffer_.clear();  // no line, as in an empty file
      if (buffer_.empty()) return false;
      break;  // a last line without its end
    }
    end = buffer_.find('\n', before);
  }
  line = buffer_.substr(begin_, end == std::string::npos ? end : end - begin_);
  begin_ = end == std::string::npos ? buffer_.size() : end + 1;
  if (line.ends_with('\r')) line.pop_back();
  if (std::exchange(first_, false) && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

bool LineReader::next(std::string& line) {
  taken_ += std::exchange(given_, 0);
  if (!take_line(line, true)) return false;
  given_ = 1;
  return true;
}

std::vector<std::string> LineReader::next(size_t most) {
  std::vector<std::string> lines;
  std::string line;
  if (most == 0 || !next(line)) return lines;
  do lines.push_back(std::exchange(line, {}));
  while (lines.size() < most && take_line(line, false));
  given_ = std::ssize(lines);
  return lines;
}

std::string LineReader::place(size_t i) const {
  return input_->name() + ":" + std::to_string(taken_ + static_cast<int64_t>(i) + 1);
}

LineReader open_lines(const std::string& path) { return LineReader(path); }

TextFile::TextFile(const std::string& path, const std::function<void()>& waiting) : name_(name_of_input(path)) {
  if (is_standard_input(path)) {
    Input input(path);
    copy_ = spill(input);
  } else {
    file_ = std::make_unique<ReadableFile>(path, waiting);
    if (is_gzip(file_->bytes())) copy_ = unpacked(file_->bytes(), name_);
  }
  text_ = text_of(copy_ ? copy_->map() : file_->bytes());
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

bool take_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const size_t end = text.find('\n');
  line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

}  // namespace heed::text
