// SPDX-License-Identifier: Apache-2.0
#include "heed/text/corpus.h"

#include <cstddef>
#include <string_view>

#include "heed/base/error.h"
#include "heed/text/utf8.h"

namespace heed::text {
namespace {

// 29,000
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

// Column `wanted` of a line, from 1.
std::string_view column(std::string_view line, int64_t wanted, const std::string& place) {
  for (int64_t number = 1;; ++number) {
    const size_t tab = line.find('\t');
    if (number == wanted) return line.substr(0, tab);
    if (tab == line.npos) {
      throw Error(place + ": has " + std::to_string(number) + (number == 1 ? " column" : " columns") +
                  " between tabs, expected at least " + std::to_string(wanted));
    }
    line.remove_prefix(tab + 1);
  }
}

// Spaces inside a sentence are left to the tokenizer.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\v\f";
  const size_t first = text.find_first_not_of(kSpaces);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

void check_options(const TsvOptions& options) {
  const auto check = [](const char* name, int64_t value, int64_t lowest) {
    if (value >= lowest) return;
    throw Error(std::string("corpus: ") + name + " is " + std::to_string(value) + ", expected at least " +
                std::to_string(lowest));
  };
  check("source_column", options.source_column, 0);
  check("target_column", options.target_column, 1);
  check("max_bytes", options.max_bytes, 1);
}

// "corpus.tsv:3"
std::string place_of(const std::string& file, int64_t line) { return file + ":" + std::to_string(line); }

void check_text(std::string_view line, const std::string& place) {
  check_utf8(line, place);
  if (line.find('\0') != line.npos) throw Error(place + ": has a zero byte, expected text");
}

// Passes on what can be used, and counts the rest.
class Sieve {
 public:
  Sieve(const TsvOptions& options, const std::function<void(const Pair&)>& each) : options_(options), each_(each) {}

  int64_t next_line() { return ++report_.lines; }
  void add_empty() { ++report_.empty; }
  void add(std::string_view source, std::string_view target, bool has_source) {
    const auto longest = static_cast<size_t>(options_.max_bytes);
    if ((has_source && squeeze_spaces(source).empty()) || squeeze_spaces(target).empty()) {
      ++report_.empty;
    } else if (source.size() > longest || target.size() > longest) {
      ++report_.too_long;
    } else {
      ++report_.kept;
      each_({cased(source), cased(target), report_.lines});
    }
  }
  const CorpusReport& report(const std::string& name) const {
    if (report_.kept == 0) throw Error(name + ": nothing is left to use: " + report_.to_string());
    return report_;
  }

 private:
  std::string cased(std::string_view text) const { return options_.lowercase ? to_lower(text) : std::string(text); }

  const TsvOptions& options_;
  const std::function<void(const Pair&)>& each_;
  CorpusReport report_;
};

void add_columns(std::string_view line, const TsvOptions& options, const std::string& place, Sieve& sieve) {
  check_text(line, place);
  if (trimmed(line).empty()) return sieve.add_empty();
  const bool pairs = options.source_column > 0;
  const std::string_view source = pairs ? trimmed(column(line, options.source_column, place)) : "";
  sieve.add(source, trimmed(column(line, options.target_column, place)), pairs);
}

int64_t lines_in(std::string_view text) {
  int64_t lines = 0;
  for (std::string_view line; take_line(text, line);) ++lines;
  return lines;
}

}  // namespace

std::string CorpusReport::to_string() const {
  return grouped(lines) + (lines == 1 ? " line, " : " lines, ") + grouped(kept) + " kept, " + grouped(empty) +
         " empty, " + grouped(too_long) + " too long";
}

TsvFile::TsvFile(const std::string& path, const TsvOptions& options) : file_(path, options.waiting), options_(options) {
  check_options(options);
}

CorpusReport TsvFile::for_each(const std::function<void(const Pair&)>& each) const {
  Sieve sieve(options_, each);
  std::string_view text = file_.text();
  for (std::string_view line; take_line(text, line);) {
    add_columns(line, options_, place_of(path(), sieve.next_line()), sieve);
  }
  return sieve.report(name());
}

ParallelFiles::ParallelFiles(const std::string& source, const std::string& target, const TsvOptions& options)
    : source_(source), target_(target), options_(options) {
  check_options(options);
  const int64_t sources = lines_in(source_.text()), targets = lines_in(target_.text());
  if (sources == targets) return;
  throw Error(target_.name() + ": has " + grouped(targets) + (targets == 1 ? " line" : " lines") + ", expected " +
              grouped(sources) + " as " + source_.name() + " has");
}

CorpusReport ParallelFiles::for_each(const std::function<void(const Pair&)>& each) const {
  Sieve sieve(options_, each);
  std::string_view sources = source_.text(), targets = target_.text();
  for (std::string_view source, target; take_line(sources, source) && take_line(targets, target);) {
    const int64_t line = sieve.next_line();
    check_text(source, place_of(source_.name(), line));
    check_text(target, place_of(target_.name(), line));
    sieve.add(trimmed(source), trimmed(target), true);
  }
  return sieve.report(name());
}

ParallelLines::ParallelLines(const std::string& path) : path_(name_of_input(path)) {
  LineReader reader = open_lines(path);
  for (std::string line; reader.next(line);) lines_.push_back(line);
}

const std::string& ParallelLines::at(int64_t number) const {
  if (number <= std::ssize(lines_)) return lines_[static_cast<size_t>(number - 1)];
  throw Error(path_ + ": has " + std::to_string(lines_.size()) + " lines, expected one for line " +
              std::to_string(number) + " of the corpus");
}

Corpus read_pairs(const PairSource& source) {
  Corpus corpus;
  corpus.report = source.for_each([&](const Pair& pair) { corpus.pairs.push_back(pair); });
  return corpus;
}

Corpus read_tsv(const std::string& path, const TsvOptions& options) { return read_pairs(TsvFile(path, options)); }

}  // namespace heed::text
