// SPDX-License-Identifier: Apache-2.0
#include "heed/models/presets.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/models/model.h"

namespace heed::models {
namespace {

using heed::testing::error_of;

TEST(Preset, EachMakesAModelForItsTask) {
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const Tensor ids = Tensor::of({1, 3}, std::vector<int32_t>{4, 5, 6});
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const auto model = make_unfilled_model(model_options(preset, {.source = 11, .tags = 7}));
    EXPECT_EQ(model->task(), preset.task);
    EXPECT_EQ(model->vocabulary(), 11);
    EXPECT_EQ(model->source_vocabulary(), 11);
    const bool tags = preset.task == Task::tag;
    EXPECT_EQ(model->outputs(), tags ? 7 : 11);
    EXPECT_EQ(model->logits(pass, {ids}, tags ? Tokens{} : Tokens{ids}).shape(), (Shape{1, 3, tags ? 7 : 11}));
  }
}

TEST(Preset, ATargetMayHaveItsOwnVocabulary) {
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    const auto model = make_unfilled_model(model_options(preset, {.source = 11, .tags = 7, .target = 5}));
    if (preset.task != Task::tag) {
      EXPECT_EQ(model->vocabulary(), 5);
    }
    if (preset.task != Task::language) {
      EXPECT_EQ(model->source_vocabulary(), 11);
    }
  }
}

// Model folders and scores of older versions depend on these.
TEST(Preset, HasTheNumbersOfBefore) {
  const auto& base = preset_named("transformer-base").options.as<TransformerOptions>();
  EXPECT_EQ(base.width, 512);
  EXPECT_EQ(base.heads, 8);
  EXPECT_EQ(base.inner, 2048);
  EXPECT_EQ(base.encoder_layers, 6);
  EXPECT_EQ(base.decoder_layers, 6);
  EXPECT_EQ(base.norm, NormPlace::after);
  const auto count = [](const char* name) {
    return make_unfilled_model(model_options(preset_named(name), {.source = 100, .tags = 10}))->parameters().count();
  };
  EXPECT_EQ(count("transformer-tiny"), 939008);
  EXPECT_EQ(count("rnn"), 742500);
  EXPECT_EQ(count("rnn-attention"), 1202020);
  EXPECT_EQ(count("rnn-self-attention"), 1333348);
  EXPECT_EQ(count("lm-small"), 2395392);
  EXPECT_EQ(count("lm-long"), 2395392);
  EXPECT_EQ(make_unfilled_model(model_options(preset_named("lm-long"), {.source = 100}))->max_length(), 16384);
  EXPECT_EQ(count("self-attentive"), 89866);
  EXPECT_EQ(count("tagger"), 410890);
}

TEST(Preset, DropoutIsThePresetsUnlessItIsGiven) {
  const Preset& preset = preset_named("rnn-attention");
  EXPECT_EQ(model_options(preset, {}).as<RnnSeq2SeqOptions>().dropout, RnnSeq2SeqOptions{}.dropout);
  EXPECT_EQ(model_options(preset, {}, 0).as<RnnSeq2SeqOptions>().dropout, 0);
}

TEST(Preset, AnUnknownNameIsGuessed) {
  EXPECT_EQ(error_of([] { preset_named("rnn-atention"); }),
            "preset is 'rnn-atention', expected " + preset_names() + ": did you mean 'rnn-attention'?");
}

}  // namespace
}  // namespace heed::models
