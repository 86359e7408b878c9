#pragma once
// Pairs of sentences from a TSV file, and why lines were left out.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/base/file.h"

namespace heed::text {

struct Pair {
  std::string source, target;
  int64_t line = 0;  // of the file, from 1
};

struct TsvOptions {
  int64_t source_column{1}, target_column{2};  // from 1; source 0: none, a language model reads the target alone
  bool lowercase{false};
  int64_t max_bytes{2000};  // a longer sentence is left out
};

struct HEED_API CorpusReport {
  int64_t lines = 0, kept = 0, empty = 0, too_long = 0;
  std::string to_string() const;  // one line: "29,000 lines, 28,990 kept, 8 empty, 2 too long"
};

struct Corpus {
  std::vector<Pair> pairs;
  CorpusReport report;
};

// Lines of UTF-8 with columns between tabs; a byte order mark and carriage returns before line ends are passed over.
// Sentences lose the space at their ends. A file that can be read only once, as a pipe, is copied to a temporary file
// first, so that it can be gone through as often as is needed.
class HEED_API TsvFile {
 public:
  // Throws Error where it cannot be read.
  TsvFile(const std::string& path, const TsvOptions&);

  const std::string& path() const { return file_.path(); }
  // One pair after the other, in order: the file may be larger than memory. Throws Error with file, line and what is
  // wrong: a column that is missing, bytes that are no UTF-8, or nothing that is left.
  CorpusReport for_each(const std::function<void(const Pair&)>& each) const;

 private:
  ReadableFile file_;
  TsvOptions options_;
};

// A file that has a line for each line of another, as the alignments of a corpus.
class HEED_API ParallelLines {
 public:
  explicit ParallelLines(const std::string& path);
  // Line n, from 1. Throws Error where there are not as many.
  const std::string& at(int64_t number) const;
  std::string place(int64_t number) const { return path_ + ":" + std::to_string(number); }

 private:
  std::string path_;
  std::vector<std::string> lines_;
};

// All of a file in memory.
HEED_API Corpus read_tsv(const std::string& path, const TsvOptions& = {});

}  // namespace heed::text
