// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text that a command works on line by line, from files or standard input, as it comes: what is there already is taken
// together, and nothing waits for more. And output in the order of the input, each piece as soon as it is its turn.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace heed::cli {

using Lines = std::vector<std::string>;

// All lines of a file; "-": of standard input. Throws Error, with the line, where one is no UTF-8.
Lines read_lines(const std::string& file);

// The name under which the library opens a file that a user has named: "-" is standard input for it, too.
std::string file_to_open(const std::string& file);

// Results that may come in any order, written in theirs.
class InOrder {
 public:
  void add(size_t item, std::string text);

 private:
  std::map<size_t, std::string> waiting_;
  size_t next_ = 0;
};

// Where a command's lines come from, and whether it goes on after one that it cannot work on.
struct LineInput {
  std::vector<std::string> files{};  // none: standard input
  bool skip_bad = false;

  // FILE... and --skip-bad; `what` is what is done with the files: "translate".
  void add_flags(CLI::App& app, const std::string& what);
};

// Lines that are worked on together.
struct Chunk {
  Lines lines{};
  int64_t first = 0;  // how many lines come before, over all files
};

// Takes the whole output of line i of a chunk, as soon as it is known: they may come in any order.
using Answer = std::function<void(size_t i, std::string text)>;

// What a command does with lines.
struct LineWork {
  std::function<void(const std::string& line)> check{};  // throws Error for a line that cannot be worked on
  std::function<void(const Chunk&, const Answer&)> run{};
  // The output for a line that is skipped; the error says where it stands and why.
  std::function<std::string(const std::string& error)> skipped{};
};

// Lines that were read together.
struct ReadLines {
  Lines lines{};
  int64_t first = 0;                             // how many lines come before, over all files
  std::function<std::string(size_t i)> place{};  // "file:3"
};

struct Skipped {
  int64_t lines = 0;
  std::string first_error{};
};

// Passes what each line gives to `output`, of those that are skipped, too; and counts these. See below for bad lines.
void work_on(ReadLines, bool skip_bad, const LineWork&, const Answer& output, Skipped&);

// What is said of them, on standard error.
void report_skipped(const Skipped&, int64_t of);

// A line that is no UTF-8, or for which `check` throws, ends it with an error that says where it stands, once those
// before it are done. With skip_bad it is skipped, and how many were is said at the end, on standard error.
void for_each_line(const LineInput&, const LineWork&);

}  // namespace heed::cli
