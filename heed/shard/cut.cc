// SPDX-License-Identifier: Apache-2.0
#include "heed/shard/cut.h"

#include <algorithm>
#include <utility>

#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/shard/sha256.h"

namespace heed::shard {
namespace {

// bytes * k / n, which would not always fit.
int64_t share(int64_t bytes, int64_t k, int64_t n) { return bytes / n * k + bytes % n * k / n; }

// The bytes of a shard, file by file.
template <class Each>
void for_each_span(const Sources& sources, const Piece& piece, const Each& each) {
  int64_t before = 0;
  for (size_t file = 0; file < sources.size(); ++file) {
    const std::string_view text = sources.text(file);
    const int64_t from = std::clamp<int64_t>(piece.begin - before, 0, std::ssize(text));
    const int64_t to = std::clamp<int64_t>(piece.begin + piece.bytes - before, 0, std::ssize(text));
    if (from < to) each(text.substr(static_cast<size_t>(from), static_cast<size_t>(to - from)));
    before += std::ssize(text);
  }
}

// Closes one shard after the other as their lines are seen.
class Cutter {
 public:
  Cutter(int64_t bytes, int64_t shards) : bytes_(bytes), shards_(shards) {
    pieces_.reserve(static_cast<size_t>(shards));
  }

  // A line with its end, which begins the text's byte `at`.
  void add(std::string_view line, int64_t at, int64_t of_file) {
    while (at >= share(bytes_, std::ssize(pieces_) + 1, shards_)) close();
    if (piece_.lines++ == 0) piece_.begin = at, piece_.first_of_file = of_file;
    piece_.bytes += std::ssize(line);
    sum_.add(line);
  }

  std::vector<Piece> finish() {
    while (std::ssize(pieces_) < shards_) close();
    return std::move(pieces_);
  }

 private:
  void close() {
    piece_.sha256 = std::exchange(sum_, {}).hex();
    pieces_.push_back(piece_);
    piece_ = {.begin = piece_.begin + piece_.bytes,
              .bytes = 0,
              .first_line = piece_.first_line + piece_.lines,
              .lines = 0,
              .first_of_file = 0,
              .sha256 = {}};
  }

  const int64_t bytes_, shards_;
  std::vector<Piece> pieces_;
  Piece piece_;
  Sha256 sum_;
};

}  // namespace

Sources::Sources(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (text::is_standard_input(path)) {
      throw Error("standard input cannot be cut into shards, expected files: whoever works on one reads it");
    }
    check_regular(path);
    files_.emplace_back(path);
  }
}

int64_t Sources::bytes() const {
  int64_t all = 0;
  for (const text::TextFile& file : files_) all += std::ssize(file.text());
  return all;
}

std::vector<Piece> cut(const Sources& sources, int64_t shards) {
  if (shards < 1 || shards > kMostShards) {
    throw Error("the number of shards is " + std::to_string(shards) + ", expected 1 to " + std::to_string(kMostShards));
  }
  Cutter cutter(sources.bytes(), shards);
  int64_t at = 0;
  for (size_t file = 0; file < sources.size(); ++file) {
    std::string_view left = sources.text(file), line;
    for (int64_t number = 0;; ++number) {
      const std::string_view before = left;
      if (!text::take_line(left, line)) break;
      const size_t taken = before.size() - left.size();
      cutter.add(before.substr(0, taken), at, number);
      at += static_cast<int64_t>(taken);
    }
  }
  return cutter.finish();
}

void check_unchanged(const Sources& sources, const Piece& piece) {
  Sha256 sum;
  for_each_span(sources, piece, [&](std::string_view text) { sum.add(text); });
  if (sum.hex() == piece.sha256) return;
  throw Error("lines " + std::to_string(piece.first_line + 1) + " to " +
              std::to_string(piece.first_line + piece.lines) +
              " of the text are not what they were when it was cut into shards, expected the same text");
}

PieceReader::PieceReader(const Sources& sources, const Piece& piece)
    : sources_(&sources), left_(piece.bytes), line_(piece.first_of_file) {
  int64_t skip = piece.begin;
  for (; file_ < sources.size() && skip >= std::ssize(sources.text(file_)); ++file_) {
    skip -= std::ssize(sources.text(file_));
  }
  if (file_ < sources.size()) text_ = sources.text(file_).substr(static_cast<size_t>(skip));
}

bool PieceReader::next(std::string_view& line) {
  if (left_ <= 0) return false;
  while (text_.empty()) {
    if (file_ + 1 >= sources_->size()) return false;
    text_ = sources_->text(++file_);
    line_ = 0;
  }
  const size_t before = text_.size();
  text::take_line(text_, line);
  left_ -= static_cast<int64_t>(before - text_.size());
  ++line_;
  return true;
}

std::string PieceReader::place() const { return sources_->path(file_) + ":" + std::to_string(line_); }

}  // namespace heed::shard
