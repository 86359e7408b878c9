// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pairs of sentences from a TSV file or from two parallel files, and why lines were left out.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/base/export.h"
#include "heed/text/lines.h"

namespace heed::text {

struct Pair {
  std::string source, target;
  int64_t line = 0;  // of the file, from 1
};

struct TsvOptions {
  int64_t source_column{1}, target_column{2};  // from 1; source 0: none, a language model reads the target alone
  bool lowercase{false};
  int64_t max_bytes{2000};          // a longer sentence is left out
  std::function<void()> waiting{};  // while nothing comes from a pipe; may throw (base/file.h)
};

struct HEED_API CorpusReport {
  int64_t lines = 0, kept = 0, empty = 0, too_long = 0;
  std::string to_string() const;  // one line: "29,000 lines, 28,990 kept, 8 empty, 2 too long"
};

struct Corpus {
  std::vector<Pair> pairs;
  CorpusReport report;
};

// Pairs that can be gone through as often as is needed, from any files that lines.h can open. Sentences lose the space
// at their ends.
class HEED_API PairSource {
 public:
  virtual ~PairSource() = default;

  virtual const std::string& path() const = 0;  // the file that pairs' lines are of
  virtual std::string name() const { return path(); }
  // One pair after the other, in order: there may be more than memory holds. Throws Error with file, line and what is
  // wrong: a column that is missing, bytes that are no UTF-8, or nothing that is left.
  virtual CorpusReport for_each(const std::function<void(const Pair&)>& each) const = 0;
};

// Lines of UTF-8 with columns between tabs.
class HEED_API TsvFile final : public PairSource {
 public:
  // Throws Error where it cannot be read.
  TsvFile(const std::string& path, const TsvOptions&);

  const std::string& path() const override { return file_.name(); }
  CorpusReport for_each(const std::function<void(const Pair&)>& each) const override;

 private:
  TextFile file_;
  TsvOptions options_;
};

// Two files of which line n of one is the translation of line n of the other, or its tags.
class HEED_API ParallelFiles final : public PairSource {
 public:
  // The options' columns are of no use here. Throws Error where the files have not as many lines.
  ParallelFiles(const std::string& source, const std::string& target, const TsvOptions& = {});

  const std::string& path() const override { return source_.name(); }
  std::string name() const override { return source_.name() + " and " + target_.name(); }
  CorpusReport for_each(const std::function<void(const Pair&)>& each) const override;

 private:
  TextFile source_, target_;
  TsvOptions options_;
};

// A file that has a line for each line of another, as the alignments of a corpus.
class HEED_API ParallelLines {
 public:
  explicit ParallelLines(const std::string& path);
  int64_t count() const { return static_cast<int64_t>(lines_.size()); }
  // Line n, from 1. Throws Error where there are not as many.
  const std::string& at(int64_t number) const;
  std::string place(int64_t number) const { return path_ + ":" + std::to_string(number); }

 private:
  std::string path_;
  std::vector<std::string> lines_;
};

// All of it in memory.
HEED_API Corpus read_pairs(const PairSource&);
HEED_API Corpus read_tsv(const std::string& path, const TsvOptions& = {});

}  // namespace heed::text
