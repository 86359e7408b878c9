#include "heed/train/preset.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/decode/tag.h"
#include "heed/text/tokenizer.h"

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

TEST(Preset, ATaggerTagsEachTokenWhateverStandsBesideIt) {
  const auto model = models::make_model(model_options(preset_named("self-attentive"), {.source = 11, .tags = 7}, 0), 3);
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const std::vector<std::vector<int32_t>> both = {{4, 5, 6, 7}, {8, 9}}, one = {{8, 9}};
  const auto together = decode::tag(pass, *model, both), alone = decode::tag(pass, *model, one);
  ASSERT_EQ(together.size(), 2u);
  EXPECT_EQ(together[0].size(), 4u);
  EXPECT_EQ(together[1], alone[0]);
}

TEST(Preset, TagsAreScoredWordByWord) {
  const std::vector<std::string> lines = {"the cat sleeps"}, tag_lines = {"DET NOUN VERB"};
  const auto words = text::train_tokenizer(lines, {}), tags = text::train_tokenizer(tag_lines, {});
  const auto model =
      models::make_model(model_options(preset_named("tagger"), {.source = words->size(), .tags = tags->size()}, 0), 3);
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const std::vector<std::vector<int32_t>> ids = {words->encode(lines[0])};
  const std::string own = tags->decode(decode::tag(pass, *model, ids)[0]);
  text::Corpus corpus;
  corpus.pairs = {{lines[0], tag_lines[0], 1}};
  const decode::TagScores scores = decode::score_tags(pass, *model, *words, *tags, corpus);
  EXPECT_EQ(scores.sentences, 1);
  EXPECT_EQ(scores.tokens, 3);
  EXPECT_EQ(scores.whole, own == tag_lines[0] ? 1 : 0);
  EXPECT_LE(scores.right, 3);
  corpus.pairs[0].target = "DET NOUN";
  EXPECT_EQ(error_of([&] { decode::score_tags(pass, *model, *words, *tags, corpus); }),
            "line 1: 3 tokens and 2 tags, expected as many");
}

}  // namespace
}  // namespace heed::train
