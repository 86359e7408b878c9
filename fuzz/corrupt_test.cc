// SPDX-License-Identifier: Apache-2.0
#include "fuzz/corrupt.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "heed/base/testing.h"

namespace heed::fuzz {
namespace {

using heed::testing::seeded;

const FolderFiles kFiles = {{"config.json", {.bytes = "{\n  \"width\": 8,\n  \"heads\": 2\n}\n"}},
                            {"model.safetensors", {.bytes = std::string(400, '\0')}},
                            {"tokenizer", {.bytes = "a\nb\nc\n"}}};

TEST(Corrupt, TheSameSeedIsTheSameFolder) {
  for (uint64_t run = 0; run < 200; ++run) {
    FolderFiles a = kFiles, b = kFiles;
    Rng first(seeded(5), run), second(seeded(5), run);
    EXPECT_EQ(corrupt(a, {kFiles}, first), corrupt(b, {kFiles}, second));
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [name, file] : a) EXPECT_EQ(file.bytes, b.at(name).bytes);
  }
}

TEST(Corrupt, DoesEverythingThatItKnows) {
  std::set<std::string> ways;
  for (uint64_t run = 0; run < 2000; ++run) {
    FolderFiles files = kFiles;
    Rng rng(seeded(1), run);
    const std::string how = corrupt(files, {kFiles}, rng);
    ways.insert(how.substr(0, how.find(';')));
  }
  EXPECT_EQ(ways.size(), 3 * 7u + 4) << "seven ways for each of three files, and those of their kinds";
}

TEST(Corrupt, FilesAreWrittenAsTheyAre) {
  const heed::testing::TemporaryFolder folder;
  FolderFiles files = kFiles;
  write_files(files, folder.file("a"));
  EXPECT_EQ(read_files(folder.file("a")).at("config.json").bytes, kFiles.at("config.json").bytes);
  files["config.json"].kind = FolderFile::Kind::folder;
  files["tokenizer"].kind = FolderFile::Kind::pipe;
  files["model.safetensors"].kind = FolderFile::Kind::loop;
  write_files(files, folder.file("a"));
  namespace fs = std::filesystem;
  EXPECT_TRUE(fs::is_directory(folder.file("a/config.json")));
  EXPECT_TRUE(fs::is_fifo(folder.file("a/tokenizer")));
  EXPECT_TRUE(fs::is_symlink(folder.file("a/model.safetensors")));
}

}  // namespace
}  // namespace heed::fuzz
