#include "heed/train/preset.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"

namespace heed::train {
namespace {

using heed::testing::error_of;

TEST(Preset, EachMakesAModelForItsTask) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const models::ModelOptions options = model_options(preset, {.source = 11, .tags = 7}, 0.25);
    if (std::string(preset.name) == "transformer-base") {  // large: its options must do
      EXPECT_EQ(options.transformer.width, 512);
      continue;
    }
    const auto model = models::make_model(options, 1);
    EXPECT_EQ(model->task(), preset.task);
    EXPECT_EQ(model->vocabulary(), 11);
    Parallel parallel(1);
    Workspace workspace;
    nn::Pass pass{{parallel, workspace}};
    const Tensor ids = Tensor::of({1, 3}, std::vector<int32_t>{4, 5, 6});
    const bool tags = preset.task == models::Task::tag;
    const Var logits = model->logits(pass, {ids}, tags ? models::Tokens{} : models::Tokens{ids});
    EXPECT_EQ(logits.shape(), (Shape{1, 3, tags ? 7 : 11}));
  }
}

TEST(Preset, DropoutIsThePresetsUnlessItIsGiven) {
  const Preset& preset = preset_named("rnn-attention");
  EXPECT_EQ(model_options(preset, {}, -1).rnn_seq2seq.dropout, models::RnnSeq2SeqOptions{}.dropout);
  EXPECT_EQ(model_options(preset, {}, 0).rnn_seq2seq.dropout, 0);
}

TEST(Preset, AnUnknownNameIsGuessed) {
  EXPECT_EQ(error_of([] { preset_named("rnn-atention"); }),
            "preset is 'rnn-atention', expected " + preset_names() + ": did you mean 'rnn-attention'?");
}

}  // namespace
}  // namespace heed::train
