#include "heed/decode/tag.h"

#include <gtest/gtest.h>

#include "heed/base/testing.h"
#include "heed/models/presets.h"
#include "heed/text/tokenizer.h"

namespace heed::decode {
namespace {

using heed::testing::error_of;
using models::model_options, models::preset_named;

TEST(Tag, ATaggerTagsEachTokenWhateverStandsBesideIt) {
  const auto model = models::make_model(model_options(preset_named("self-attentive"), {.source = 11, .tags = 7}, 0), 3);
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const std::vector<std::vector<int32_t>> both = {{4, 5, 6, 7}, {8, 9}}, one = {{8, 9}};
  const auto together = tag(pass, *model, both), alone = tag(pass, *model, one);
  ASSERT_EQ(together.size(), 2u);
  EXPECT_EQ(together[0].size(), 4u);
  EXPECT_EQ(together[1], alone[0]);
}

TEST(Tag, TagsAreScoredWordByWord) {
  const std::vector<std::string> lines = {"the cat sleeps"}, tag_lines = {"DET NOUN VERB"};
  const auto words = text::train_tokenizer(lines, {}), tags = text::train_tokenizer(tag_lines, {});
  const auto model =
      models::make_model(model_options(preset_named("tagger"), {.source = words->size(), .tags = tags->size()}, 0), 3);
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const std::vector<std::vector<int32_t>> ids = {words->encode(lines[0])};
  const std::string own = tags->decode(tag(pass, *model, ids)[0]);
  text::Corpus corpus;
  corpus.pairs = {{lines[0], tag_lines[0], 1}};
  const TagScores scores = score_tags(pass, *model, *words, *tags, corpus);
  EXPECT_EQ(scores.sentences, 1);
  EXPECT_EQ(scores.tokens, 3);
  EXPECT_EQ(scores.whole, own == tag_lines[0] ? 1 : 0);
  EXPECT_LE(scores.right, 3);
  corpus.pairs[0].target = "DET NOUN";
  EXPECT_EQ(error_of([&] { score_tags(pass, *model, *words, *tags, corpus); }),
            "line 1: 3 tokens and 2 tags, expected as many");
}

}  // namespace
}  // namespace heed::decode
