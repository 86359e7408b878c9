#pragma once
// Lines of files or of standard input, as they come: what is there already is taken together, and nothing waits for
// more. And output in the order of the input, each piece as soon as it is its turn.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace heed::cli {

class LineReader {
 public:
  // Empty: standard input. Throws Error where the file cannot be read.
  explicit LineReader(const std::string& file);
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader();

  // Waits for one line, and takes up to `most` that are there by then. None: the end has come. A byte order mark at the
  // very beginning and carriage returns before line ends are passed over.
  std::vector<std::string> next(size_t most);
  // "file:3", for line i of those that next() gave last.
  std::string place(size_t i) const;

 private:
  bool fill(bool wait);  // false: nothing more comes, or nothing is there without waiting
  bool take_line(std::string& line);

  std::string name_;
  int descriptor_ = 0;
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been taken
  bool at_end_ = false, first_ = true;
  int64_t taken_ = 0, given_ = 0;  // lines before the last next(), and by it
};

// Results that may come in any order, written in theirs.
class InOrder {
 public:
  void add(size_t item, std::string text);

 private:
  std::map<size_t, std::string> waiting_;
  size_t next_ = 0;
};

// Reads lines, of standard input where there are no files, and hands them to `run` some at a time. A line for which
// `check` throws ends it: those before it are done first, and the error says where it stands.
using Lines = std::vector<std::string>;
void for_each_chunk(const std::vector<std::string>& files, size_t most,
                    const std::function<void(const std::string&)>& check, const std::function<void(const Lines&)>& run);

}  // namespace heed::cli
