// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "heed/base/testing.h"
#include "heed/grammar/grammar.h"
#include "heed/text/words.h"

namespace heed::grammar {
namespace {

using heed::testing::error_of, heed::testing::seeded;
using heed::testing::TemporaryFolder;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Files, LinesOfBothTasks) {
  Grammar grammar(seeded(1));
  const Sentence sentence = grammar.next();
  EXPECT_EQ(tsv(sentence, Task::translate),
            text::detokenise(sentence.source) + "\t" + text::detokenise(sentence.target));
  EXPECT_EQ(tsv(sentence, Task::tag), join(sentence.source) + "\t" + to_string(sentence.tags));
}

TEST(Files, SplitHasThreePartsWithThreeFilesBesideEach) {
  TemporaryFolder folder;
  write_split({.pairs = 1000, .seed = seeded(7)}, folder.path() + "/new/corpus");
  const std::string place = folder.path() + "/new/corpus/";
  std::set<std::string> sources;
  for (const auto& [part, size] : {std::pair{"train", 1000u}, {"dev", 50u}, {"test", 50u}}) {
    const auto pairs = lines_of(place + part + ".tsv");
    EXPECT_EQ(pairs.size(), size);
    for (const std::string& pair : pairs) EXPECT_TRUE(sources.insert(pair.substr(0, pair.find('\t'))).second) << pair;
    const auto tags = lines_of(place + part + ".tags");
    ASSERT_EQ(tags.size(), size);
    EXPECT_EQ(lines_of(place + part + ".align").size(), size);
    EXPECT_EQ(lines_of(place + part + ".referents").size(), size);
    const auto words = text::words_and_marks(pairs[3].substr(0, pairs[3].find('\t')));
    EXPECT_EQ(text::words_and_marks(tags[3]).size(), words.size());
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place), std::filesystem::directory_iterator{}), 12);
}

TEST(Files, SplitIsTheSameEveryTime) {
  TemporaryFolder first, second;
  write_split({.pairs = 300, .seed = seeded(8), .task = Task::tag}, first.path());
  write_split({.pairs = 300, .seed = seeded(8), .task = Task::tag}, second.path());
  write_split({.pairs = 300, .seed = seeded(8), .task = Task::tag}, second.path());  // over what is there
  for (const char* name : {"train.tsv", "dev.tsv", "test.tsv", "test.align", "dev.referents", "train.tags"}) {
    EXPECT_EQ(lines_of(first.file(name)), lines_of(second.file(name))) << name;
    EXPECT_FALSE(lines_of(first.file(name)).empty());
  }
}

TEST(Files, SizesOfDevAndTest) {
  EXPECT_EQ(held_out_size(1), 1);
  EXPECT_EQ(held_out_size(20'000), 1000);
  EXPECT_EQ(held_out_size(1'000'000), 2000);
}

TEST(Files, RejectsAFolderThatCannotBe) {
  TemporaryFolder folder;
  std::ofstream(folder.file("taken")) << "a file";
  EXPECT_EQ(error_of([&] { write_split({.pairs = 10}, folder.file("taken")); }),
            folder.file("taken") + ": cannot create the folder: Not a directory");
}

}  // namespace
}  // namespace heed::grammar
