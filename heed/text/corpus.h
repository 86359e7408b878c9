#pragma once
// Pairs of sentences from a TSV file, and why lines were left out.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/base/export.h"

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
// Sentences lose the space at their ends. Throws Error with file, line and what is wrong: a column that is missing,
// bytes that are no UTF-8, a file that cannot be read, or one in which nothing is left.
HEED_API Corpus read_tsv(const std::string& path, const TsvOptions& = {});
// The same, one pair after the other: for a file that is larger than memory. It has to be a regular file.
HEED_API CorpusReport for_each_pair(const std::string& path, const TsvOptions&,
                                    const std::function<void(const Pair&)>& each);

}  // namespace heed::text
