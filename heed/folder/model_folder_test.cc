// SPDX-License-Identifier: Apache-2.0
#include "heed/folder/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "heed/base/testing.h"
#include "heed/data/testing.h"

namespace heed::folder {
namespace {

namespace fs = std::filesystem;
using heed::testing::error_of, heed::testing::TemporaryFolder, heed::testing::seeded;
using Kind = models::TransformerKind;

std::shared_ptr<const text::Tokenizer> words(const std::string& text) {
  return text::train_tokenizer(std::vector<std::string>{text}, {});
}

struct Options {
  int64_t steps{7};
  static void describe(Options& o, auto&& field) { field("steps", o.steps, "how many"); }
};

TEST(ModelFolder, WhatWasSavedIsOpened) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.file("a/b");
  const auto model = data::testing::small_model(Kind::encoder_decoder, 9, 1);
  save(folder, *model, data::Tokenizers::shared(words("a b c d e")));
  const data::TextModel opened = open(folder);
  EXPECT_EQ(opened.name(), folder);
  EXPECT_EQ(open_model(folder)->parameters().values().to_doubles(), model->parameters().values().to_doubles());
  EXPECT_TRUE(opened.tokenizers().are_shared());
  EXPECT_EQ(opened.source().encode("b"), (std::vector<int32_t>{5}));
  EXPECT_FALSE(has_training(folder));
  Options options;
  EXPECT_FALSE(read_training(folder, options));
  save_training(folder, Options{12});
  EXPECT_TRUE(read_training(folder, options));
  EXPECT_EQ(options.steps, 12);
}

TEST(ModelFolder, ToUseAModelNeedsNoGradients) {
  const TemporaryFolder temporary;
  save(temporary.path(), *data::testing::small_model(Kind::decoder, 9, 1));
  EXPECT_FALSE(open_model(temporary.path())->parameters().gradients());
  EXPECT_TRUE(open_model(temporary.path(), DType::f32, true)->parameters().gradients());
  EXPECT_EQ(open_model(temporary.path(), DType::f64)->parameters().values().dtype(), DType::f64);
}

TEST(ModelFolder, SourceAndTargetMayHaveATokenizerEach) {
  const TemporaryFolder temporary;
  models::TransformerOptions o;
  o.vocabulary = 7, o.source_vocabulary = 9, o.width = 8, o.heads = 2, o.inner = 8, o.max_length = 20;
  const auto model = models::make_model(o, seeded(1));
  save(temporary.path(), *model, {words("a b c d e"), words("x y z")});
  const data::TextModel opened = open(temporary.path());
  EXPECT_FALSE(opened.tokenizers().are_shared());
  EXPECT_EQ(opened.source().size(), 9);
  EXPECT_EQ(opened.target().size(), 7);
  o.source_vocabulary = 0, o.vocabulary = 9;
  save(temporary.path(), *models::make_model(o, seeded(1)), data::Tokenizers::shared(words("a b c d e")));
  EXPECT_TRUE(open(temporary.path()).tokenizers().are_shared()) << "nothing of the model before is left";
}

TEST(ModelFolder, IsOpenedWithoutTokenizers) {
  const TemporaryFolder temporary;
  save(temporary.path(), *data::testing::small_model(Kind::decoder, 9, 1));
  EXPECT_FALSE(open(temporary.path()).has_tokenizers());
}

TEST(ModelFolder, SaysWhatIsWrong) {
  const TemporaryFolder temporary;
  const std::string folder = temporary.path();
  EXPECT_EQ(error_of([&] { open(folder + "/none"); }),
            "model folder '" + folder + "/none' is not there, expected one with config.json and model.safetensors");
  EXPECT_EQ(error_of([&] { open(folder); }), folder + "/config.json: cannot open: No such file or directory");
  save(folder, *data::testing::small_model(Kind::decoder, 9, 1), data::Tokenizers::shared(words("a b c d")));
  EXPECT_EQ(error_of([&] { open(folder); }), folder + ": the tokenizer has 8 tokens, expected 9 as the model has");
  std::ofstream(folder + "/file") << "x";
  EXPECT_TRUE(error_of([&] { create(folder + "/file"); }).starts_with("cannot make folder '" + folder + "/file': "));
}

TEST(ModelFolder, LeftoversOfAKilledProcessAreRemoved) {
  const TemporaryFolder temporary;
  fs::create_directories(temporary.file("snapshots"));
  for (const char* name : {"model.safetensors.tmp.12.0", "snapshots/3.safetensors.tmp.12.0", "kept"}) {
    std::ofstream(temporary.file(name)) << "x";
  }
  remove_unfinished(temporary.path());
  EXPECT_FALSE(fs::exists(temporary.file("model.safetensors.tmp.12.0")));
  EXPECT_TRUE(fs::is_empty(temporary.file("snapshots")));
  EXPECT_TRUE(fs::exists(temporary.file("kept")));
}

}  // namespace
}  // namespace heed::folder
