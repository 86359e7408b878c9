// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lines of several files, one file after the other, cut into shards: contiguous, whole lines, about as many bytes
// each. A line belongs to the shard in whose bytes it begins, so that the text and the number of shards alone say where
// each is. Not here: what is done with the lines (run.h).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/base/export.h"
#include "heed/text/lines.h"

namespace heed::shard {

// One shard of the text.
struct Piece {
  int64_t begin = 0, bytes = 0;       // of the text of all files, end to end
  int64_t first_line = 0, lines = 0;  // of all files; lines are counted from 0
  int64_t first_of_file = 0;          // the first line, counted in its own file
  std::string sha256{};               // of these bytes

  bool operator==(const Piece&) const = default;
};

// The files, mapped; what gzip has packed is unpacked into a temporary file.
class HEED_API Sources {
 public:
  // Throws Error for what is no regular file: standard input can be read once alone, and shards are tried again.
  explicit Sources(const std::vector<std::string>& paths);

  size_t size() const { return files_.size(); }
  const std::string& path(size_t file) const { return files_[file].name(); }
  std::string_view text(size_t file) const { return files_[file].text(); }
  int64_t bytes() const;

 private:
  std::vector<text::TextFile> files_;
};

inline constexpr int64_t kMostShards = 100000;

// Reads all of the text. There are shards without lines where there are few lines.
HEED_API std::vector<Piece> cut(const Sources&, int64_t shards);
// Throws Error where these bytes are no longer what they were when the text was cut.
HEED_API void check_unchanged(const Sources&, const Piece&);

// The lines of a shard, from its first.
class HEED_API PieceReader {
 public:
  PieceReader(const Sources&, const Piece&);

  // False: the end has come.
  bool next(std::string_view& line);
  // "file:3", for the line that next() gave last.
  std::string place() const;

 private:
  const Sources* sources_;
  size_t file_ = 0;
  std::string_view text_;  // of that file, what is left
  int64_t left_ = 0;       // bytes of the shard
  int64_t line_ = 0;       // lines of the file that were passed
};

}  // namespace heed::shard
