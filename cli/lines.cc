// SPDX-License-Identifier: Apache-2.0
#include "cli/lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "cli/output.h"
#include "cli/progress.h"
#include "heed/base/error.h"
#include "heed/text/lines.h"
#include "heed/text/utf8.h"

namespace heed::cli {

namespace {

constexpr size_t kMost = 1024;  // lines taken at a time, so that those of one length can go together

// Why a line cannot be worked on, with its place; empty: it can.
std::string error_of(const std::string& line, const std::string& place, const LineWork& work) {
  try {
    text::check_utf8(line, place);
  } catch (const Error& error) {
    return error.what();
  }
  try {
    work.check(line);
  } catch (const Error& error) {
    return place + ": " + error.what();
  }
  return "";
}

// What many try first: the text itself in place of a file's name.
void check_is_no_sentence(const std::string& file) {
  if (file.find(' ') == file.npos || std::filesystem::exists(file)) return;
  throw Error(file + ": cannot open: No such file or directory; text itself comes from standard input");
}

// Lines of all files, worked on chunk by chunk.
class LineLoop {
 public:
  LineLoop(const LineInput& input, const LineWork& work)
      : work_(work), skip_bad_(input.skip_bad), shows_(!input.files.empty() && isatty(STDOUT_FILENO) == 0) {}

  void read(const std::string& file) {
    text::LineReader reader = text::open_lines(file);
    for (Lines lines = reader.next(kMost); !lines.empty(); lines = reader.next(kMost)) {
      const int64_t count = std::ssize(lines);
      InOrder output;
      work_on(
          {.lines = std::move(lines), .first = read_, .place = [&](size_t i) { return reader.place(i); }}, skip_bad_,
          work_, [&](size_t i, std::string text) { output.add(i, std::move(text)); }, skipped_);
      read_ += count;
      if (shows_) progress_.show(read_);
    }
  }

  void report() {
    progress_.end();
    report_skipped(skipped_, read_);
  }

 private:
  const LineWork& work_;
  const bool skip_bad_, shows_;
  Progress progress_{"lines"};
  int64_t read_ = 0;
  Skipped skipped_;
};

}  // namespace

// Lines between two bad ones are a chunk, so that its first says which lines they are.
void work_on(ReadLines read, bool skip_bad, const LineWork& work, const Answer& output, Skipped& skipped) {
  Chunk good;
  size_t begin = 0;  // of the good ones, among the lines
  const auto run = [&](size_t end) {
    good.first = read.first + static_cast<int64_t>(begin);
    if (!good.lines.empty()) {
      work.run(good, [&](size_t i, std::string text) { output(begin + i, std::move(text)); });
    }
    good.lines.clear();
    begin = end + 1;
  };
  for (size_t i = 0; i < read.lines.size(); ++i) {
    const std::string error = error_of(read.lines[i], read.place(i), work);
    if (error.empty()) {
      good.lines.push_back(std::move(read.lines[i]));
      continue;
    }
    run(i);
    if (!skip_bad) throw Error(error);
    if (++skipped.lines == 1) skipped.first_error = error;
    output(i, work.skipped(error));
  }
  run(read.lines.size());
}

void report_skipped(const Skipped& skipped, int64_t of) {
  if (skipped.lines == 0) return;
  fmt::print(stderr, "heed: skipped {} of {} lines, the first: {}\n", skipped.lines, of, skipped.first_error);
}

Lines read_lines(const std::string& file) {
  text::LineReader reader = text::open_lines(file);
  Lines all;
  for (Lines lines = reader.next(kMost); !lines.empty(); lines = reader.next(kMost)) {
    for (size_t i = 0; i < lines.size(); ++i) {
      text::check_utf8(lines[i], reader.place(i));
      all.push_back(std::move(lines[i]));
    }
  }
  return all;
}

std::string file_to_open(const std::string& file) { return file == "-" ? "/dev/stdin" : file; }

void LineInput::add_flags(CLI::App& app, const std::string& what) {
  app.add_option("files", files, "Files to " + what + ", - is standard input; none: standard input")->type_name("FILE");
  app.add_flag("--skip-bad", skip_bad,
               "Go on after a line that is no UTF-8 or too long, with an empty line in its place");
}

void for_each_line(const LineInput& input, const LineWork& work) {
  LineLoop loop(input, work);
  if (input.files.empty()) {
    if (isatty(STDIN_FILENO) != 0) fmt::print(stderr, "heed: reads lines from the terminal, Ctrl-D ends\n");
    loop.read("-");
  }
  for (const std::string& file : input.files) {
    check_is_no_sentence(file);
    loop.read(file);
  }
  loop.report();
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
