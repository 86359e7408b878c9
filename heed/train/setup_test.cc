// SPDX-License-Identifier: Apache-2.0
// What a run begins with: pairs from files of any form, a model of one's own, and one that is gone on from.
#include "heed/train/setup.h"

#include <gtest/gtest.h>

#include <fstream>

#include "heed/base/file.h"
#include "heed/folder/model_folder.h"
#include "heed/models/presets.h"
#include "heed/train/testing.h"

namespace heed::train {
namespace {

using heed::testing::error_of, heed::testing::text_of;
using testing::Files, testing::with_steps;

std::string read(const std::string& path) { return text_of(read_file(path, 1 << 28)); }

struct SetupTest : ::testing::Test {
  std::string error(const RunOptions& o, const std::string& name = "bad") {
    return error_of([&] { run(o, files.out(name), listener, parallel); });
  }
  // One step, which is enough to see where a run begins.
  RunOptions short_run() const {
    RunOptions o = files.options();
    o.train.steps = 1, o.train.warmup = 0;
    return o;
  }
  // The pairs of a TSV file as two files.
  void split(const std::string& name) const {
    std::ofstream source(files.out(name + ".en")), target(files.out(name + ".es"));
    for (const text::Pair& pair : text::read_tsv(files.out(name + ".tsv")).pairs) {
      source << pair.source << '\n';
      target << pair.target << '\n';
    }
  }

  const Files files;
  Listener listener;
  Parallel parallel{1};
};

TEST_F(SetupTest, ParallelFilesGiveTheBitsOfATsvFile) {
  split("train"), split("dev");
  run(short_run(), files.out("tsv"), listener, parallel);
  RunOptions o = short_run();
  o.source = files.out("train.en"), o.target = files.out("train.es"), o.data = "";
  o.dev_source = files.out("dev.en"), o.dev_target = files.out("dev.es"), o.dev = "";
  run(o, files.out("two"), listener, parallel);
  EXPECT_TRUE(read(files.out("two/model.safetensors")) == read(files.out("tsv/model.safetensors")));
  EXPECT_EQ(read(files.out("two/tokenizer")), read(files.out("tsv/tokenizer")));
  EXPECT_EQ(resume(files.out("two"), with_steps(files.out("two"), 3), listener, parallel).steps, 3);

  std::ofstream(files.out("dev.es"), std::ios::app) << "A B\n";
  EXPECT_EQ(error(o), files.out("dev.es") + ": has 11 lines, expected 10 as " + files.out("dev.en") + " has");
}

TEST_F(SetupTest, SaysWhichFilesAreMissing) {
  RunOptions o = short_run();
  o.data = "";
  EXPECT_EQ(error(o), "train: data is missing, expected a TSV file of pairs, or source and target");
  o.source = "a";
  EXPECT_EQ(error(o), "train: source came alone, expected source and target");
  o.data = "b";
  EXPECT_EQ(error(o), "train: data came with source, expected data alone or source and target");
  o = short_run();
  o.dev = "";
  EXPECT_EQ(error(o), "train: dev is missing, expected a TSV file of pairs, or dev_source and dev_target");
  o.preset = "lm-small";
  EXPECT_EQ(error(o), "train: dev is missing, expected a TSV file of pairs");
  o.dev_source = o.dev_target = "a";
  EXPECT_EQ(error(o), "train: dev_source and dev_target came for a language model, which has no source: expected dev");
  o = short_run();
  o.data = "-", o.dev = "/dev/stdin";
  EXPECT_EQ(error(o), "train: standard input was named 2 times, expected once");
}

TEST_F(SetupTest, LinesMayBeAsLongAsTheTokensThatAreAllowed) {
  RunOptions o = short_run();
  o.max_length = 128;
  EXPECT_EQ(columns_of(o, models::Task::language).max_bytes, 2000);
  o.max_length = 16384;
  EXPECT_GE(columns_of(o, models::Task::language).max_bytes, 8 * 16384) << "words have 5 or 6 bytes with their space";
  EXPECT_EQ(columns_of(o, models::Task::language).source_column, 0);
  EXPECT_EQ(columns_of(o, models::Task::translate).target_column, 2);
}

TEST_F(SetupTest, AModelOfOnesOwnHasItsSizesFromTheTokenizers) {
  RunOptions o = short_run();
  o.model = models::TransformerOptions{.vocabulary = 77,
                                       .source_vocabulary = 5,
                                       .width = 24,
                                       .heads = 3,
                                       .inner = 40,
                                       .encoder_layers = 1,
                                       .decoder_layers = 2};
  run(o, files.out("m"), listener, parallel);
  const auto model = folder::open_model(files.out("m"));
  EXPECT_EQ(model->options().as<models::TransformerOptions>().width, 24);
  EXPECT_EQ(model->options().as<models::TransformerOptions>().source_vocabulary, 0);
  EXPECT_EQ(model->vocabulary(), text::load_tokenizer(files.out("m/tokenizer"))->size());
  RunOptions kept;
  ASSERT_TRUE(folder::read_training(files.out("m"), kept));
  EXPECT_EQ(kept.preset, "own transformer");
  EXPECT_EQ(resume(files.out("m"), with_steps(files.out("m"), 2), listener, parallel).steps, 2)
      << "of what config.json says";
}

TEST_F(SetupTest, OptionsThatDoNotFitAreSeenBeforeDataIsRead) {
  RunOptions o = short_run();
  o.data = "/nowhere/at/all.tsv";
  o.model = models::TransformerOptions{.width = 100, .heads = 3};
  EXPECT_EQ(error(o), error_of([] {
              models::make_unfilled_model(models::TransformerOptions{.vocabulary = 5, .width = 100, .heads = 3});
            }));
  o.model = models::TransformerOptions{.max_length = 100};
  EXPECT_EQ(error(o), "train: max_length is 128, expected at most the model's 100");
  o.model = models::TransformerOptions{.kind = models::TransformerKind::encoder};
  EXPECT_NE(error(o).find("expected a model that translates, a language model or a tagger"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(files.out("bad")));
}

TEST_F(SetupTest, GoesOnFromAnotherModel) {
  RunOptions o = files.options();
  o.preset = "rnn-dot", o.dropout = 0, o.separate_vocabularies = true;
  run(o, files.out("first"), listener, parallel);
  RunOptions next = short_run();
  next.init = files.out("first");
  next.train.rate = 1e-12;
  run(next, files.out("second"), listener, parallel);
  for (const char* name : {"/tokenizer", "/target_tokenizer", "/config.json"}) {
    EXPECT_EQ(read(files.out("second") + name), read(files.out("first") + name)) << name;
  }
  // With next to no rate the parameters stay where they were.
  const auto before = folder::open_model(files.out("first")), after = folder::open_model(files.out("second"));
  const Tensor &a = before->parameters().values(), &b = after->parameters().values();
  ASSERT_EQ(a.shape(), b.shape());
  for (int64_t i = 0; i < a.shape(0); ++i) ASSERT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-6) << i;
  EXPECT_EQ(resume(files.out("second"), with_steps(files.out("second"), 3), listener, parallel).steps, 3);

  next.dropout = 0.3;
  run(next, files.out("third"), listener, parallel);
  EXPECT_EQ(folder::open_model_options(files.out("third")).as<models::RnnSeq2SeqOptions>().dropout, 0.3f);
}

TEST_F(SetupTest, SaysWhyItCannotGoOnFromAModel) {
  RunOptions o = short_run();
  o.init = "/nowhere";
  EXPECT_EQ(error(o), "model folder '/nowhere' is not there, expected one with config.json and model.safetensors");
  run(short_run(), files.out("m"), listener, parallel);
  o.init = files.out("m");
  o.model = models::TransformerOptions{};
  EXPECT_EQ(error(o), "train: model and init came, expected one of them");
  o.model.reset();
  std::filesystem::remove(files.out("m/tokenizer"));
  EXPECT_EQ(error(o), files.out("m") + ": has no tokenizer, expected one to train on text");
}

}  // namespace
}  // namespace heed::train
