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

class Reader {
 public:
  Reader(const std::string& path, const TsvOptions& options, const std::function<void(const Pair&)>& each)
      : path_(path), options_(options), each_(each) {}

  CorpusReport read_all(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\uFEFF";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    while (!text.empty()) {
      const size_t end = text.find('\n');
      read(text.substr(0, end));
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
    if (report_.kept == 0) throw Error(path_ + ": nothing is left to use: " + report_.to_string());
    return report_;
  }

 private:
  void read(std::string_view line) {
    const std::string place = path_ + ":" + std::to_string(++report_.lines);
    if (line.ends_with('\r')) line.remove_suffix(1);
    check_utf8(line, place);
    if (line.find('\0') != line.npos) throw Error(place + ": has a zero byte, expected text");
    if (trimmed(line).empty()) {
      ++report_.empty;
      return;
    }
    const bool pairs = options_.source_column > 0;
    const std::string_view source = pairs ? trimmed(column(line, options_.source_column, place)) : "";
    const std::string_view target = trimmed(column(line, options_.target_column, place));
    const auto longest = static_cast<size_t>(options_.max_bytes);
    if ((pairs && squeeze_spaces(source).empty()) || squeeze_spaces(target).empty()) {
      ++report_.empty;
    } else if (source.size() > longest || target.size() > longest) {
      ++report_.too_long;
    } else {
      ++report_.kept;
      each_({cased(source), cased(target), report_.lines});
    }
  }
  std::string cased(std::string_view text) const { return options_.lowercase ? to_lower(text) : std::string(text); }

  const std::string& path_;
  const TsvOptions& options_;
  const std::function<void(const Pair&)>& each_;
  CorpusReport report_;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string CorpusReport::to_string() const {
  return grouped(lines) + (lines == 1 ? " line, " : " lines, ") + grouped(kept) + " kept, " + grouped(empty) +
         " empty, " + grouped(too_long) + " too long";
}

TsvFile::TsvFile(const std::string& path, const TsvOptions& options) : file_(path), options_(options) {
  check_options(options);
}

CorpusReport TsvFile::for_each(const std::function<void(const Pair&)>& each) const {
  return Reader(path(), options_, each).read_all(text_of(file_.bytes()));
}

ParallelLines::ParallelLines(const std::string& path) : path_(path) {
  const ReadableFile file(path);
  std::string_view text = text_of(file.bytes());
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines_.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

const std::string& ParallelLines::at(int64_t number) const {
  if (number <= std::ssize(lines_)) return lines_[static_cast<size_t>(number - 1)];
  throw Error(path_ + ": has " + std::to_string(lines_.size()) + " lines, expected one for line " +
              std::to_string(number) + " of the corpus");
}

Corpus read_tsv(const std::string& path, const TsvOptions& options) {
  Corpus corpus;
  corpus.report = TsvFile(path, options).for_each([&](const Pair& pair) { corpus.pairs.push_back(pair); });
  return corpus;
}

}  // namespace heed::text
