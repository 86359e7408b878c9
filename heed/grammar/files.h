// SPDX-License-Identifier: Apache-2.0
#pragma once
// The corpus as text: lines for standard output, and the files of a split.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "heed/grammar/sentence.h"
#include "heed/text/corpus.h"

namespace heed::grammar {

enum class Task { translate, tag };

// translate: English, tab, Spanish. tag: tokens with spaces between them, tab, their tags.
std::string tsv(const Sentence& sentence, Task task);

struct SplitFilesOptions {
  int64_t pairs = 0;  // of train.tsv
  uint64_t seed = 0;
  Task task = Task::translate;
};

// The size of dev.tsv, and of test.tsv: a twentieth of training, from 1 to 2,000.
int64_t held_out_size(int64_t pairs);

// Writes train, dev and test, each as .tsv with .align, .referents and .tags beside it, line by line the same
// sentences. The folder is made if need be. A file appears under its name only when it is complete.
void write_split(const SplitFilesOptions& options, const std::filesystem::path& folder);

// corpus/test.tsv: corpus/test.align
std::string file_beside(const std::string& tsv, const std::string& extension);

// What the grammar knows of each pair of a corpus that write_split wrote, from the files beside it. Throws Error with
// file and line.
std::vector<Sentence> read_sentences(const std::string& tsv, const text::Corpus&);

}  // namespace heed::grammar
