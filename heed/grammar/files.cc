// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/files.h"

#include <algorithm>
#include <array>
#include <span>

#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/grammar/agreement.h"
#include "heed/grammar/grammar.h"
#include "heed/grammar/split.h"
#include "heed/text/words.h"

namespace heed::grammar {

namespace {

namespace fs = std::filesystem;

// Lines, collected so that a sentence is not a system call.
class LineFile {
 public:
  explicit LineFile(const fs::path& path) : file_(path.string()) {}

  void line(const std::string& text) {
    buffer_ += text;
    buffer_ += '\n';
    if (buffer_.size() > kBufferSize) flush();
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  static constexpr size_t kBufferSize = size_t{1} << 16;

  void flush() {
    file_.append(std::as_bytes(std::span(buffer_)));
    buffer_.clear();
  }

  AtomicFile file_;
  std::string buffer_;
};

class SubsetFiles {
 public:
  SubsetFiles(const fs::path& folder, const std::string& name, int64_t wanted)
      : tsv_(folder / (name + ".tsv")),
        align_(folder / (name + ".align")),
        referents_(folder / (name + ".referents")),
        tags_(folder / (name + ".tags")),
        wanted_(wanted) {}

  bool full() const { return wanted_ == 0; }
  void add(const Sentence& sentence, Task task) {
    tsv_.line(tsv(sentence, task));
    align_.line(pharaoh(sentence.alignment));
    referents_.line(to_string(sentence.referents));
    tags_.line(to_string(sentence.tags));
    --wanted_;
  }
  void commit() {
    for (LineFile* file : {&align_, &referents_, &tags_, &tsv_}) file->commit();
  }

 private:
  LineFile tsv_, align_, referents_, tags_;
  int64_t wanted_;
};

}  // namespace

std::string tsv(const Sentence& sentence, Task task) {
  if (task == Task::tag) return join(sentence.source) + "\t" + to_string(sentence.tags);
  return text::detokenise(sentence.source) + "\t" + text::detokenise(sentence.target);
}

int64_t held_out_size(int64_t pairs) { return std::clamp<int64_t>(pairs / 20, 1, 2000); }

void write_split(const SplitFilesOptions& options, const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(folder.string() + ": cannot create the folder: " + failure.message());
  const int64_t held_out = held_out_size(options.pairs);
  std::array<SubsetFiles, 3> subsets{SubsetFiles(folder, "train", options.pairs), SubsetFiles(folder, "dev", held_out),
                                     SubsetFiles(folder, "test", held_out)};
  const auto full = [](const SubsetFiles& files) { return files.full(); };

  const Split split(options.seed);
  Grammar grammar(options.seed);
  while (!std::ranges::all_of(subsets, full)) {
    const Sentence sentence = grammar.next();
    const auto subset = split.part_of(sentence);
    if (!subset) continue;
    SubsetFiles& files = subsets[static_cast<size_t>(*subset)];
    if (!files.full()) files.add(sentence, options.task);
  }
  for (SubsetFiles& files : subsets) files.commit();
}

std::string file_beside(const std::string& tsv, const std::string& extension) {
  return std::filesystem::path(tsv).replace_extension(extension).string();
}

std::vector<Sentence> read_sentences(const std::string& tsv, const text::Corpus& corpus) {
  const text::ParallelLines links(file_beside(tsv, ".align")), referents(file_beside(tsv, ".referents")),
      tags(file_beside(tsv, ".tags"));
  std::vector<Sentence> sentences;
  for (const text::Pair& pair : corpus.pairs) {
    try {
      sentences.push_back(
          sentence_of(pair.source, pair.target, links.at(pair.line), referents.at(pair.line), tags.at(pair.line)));
    } catch (const Error& error) {
      throw Error(tsv + ":" + std::to_string(pair.line) + ": " + error.what());
    }
  }
  return sentences;
}

}  // namespace heed::grammar
