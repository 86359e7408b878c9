// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/align.h"

#include <gtest/gtest.h>

#include "heed/analysis/weights.h"
#include "heed/base/testing.h"
#include "heed/data/batch.h"
#include "heed/data/testing.h"

namespace heed::analysis {
namespace {

using data::testing::small_model;
using heed::testing::error_of;
using Kind = models::TransformerKind;

class AlignTest : public ::testing::Test {
 protected:
  nn::Pass pass(nn::Observer* observer = nullptr) {
    nn::Pass p{{parallel_, workspace_}};
    p.observer = observer;
    return p;
  }
  Tensor weights(const models::Model& model, const data::Batch& batch, const AlignOptions& options = {}) {
    nn::Pass p = pass();
    return cross_weights(p, model, batch, options);
  }

  Parallel parallel_{1};
  Workspace workspace_;
};

data::Batch batch_of(const std::vector<std::vector<int32_t>>& sources,
                     const std::vector<std::vector<int32_t>>& targets) {
  data::Batch batch = data::source_batch(sources);
  data::add_targets(batch, targets);
  return batch;
}

TEST_F(AlignTest, RowsAreWeightsOfWhatIsThere) {
  const auto model = small_model(Kind::encoder_decoder, 9, 1);
  const data::Batch batch = batch_of({{4, 5, 6, 7}, {8, 3}}, {{5, 6}, {7, 8, 4}});
  const Tensor all = weights(*model, batch);
  ASSERT_EQ(all.shape(), (Shape{2, 4, 5}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 4; ++t) {
      const float* row = all.data<float>() + (b * 4 + t) * 5;
      double sum = 0;
      for (int64_t s = 0; s < 5; ++s) sum += double{row[s]};
      EXPECT_NEAR(sum, 1, 1e-5);
      for (int64_t s = batch.source_lengths[static_cast<size_t>(b)]; s < 5; ++s) EXPECT_EQ(row[s], 0) << "padding";
    }
  }
}

TEST_F(AlignTest, TheMeanIsThatOfTheHeadsAndTheLastLayerIsTheLast) {
  const auto model = small_model(Kind::encoder_decoder, 9, 2);
  const data::Batch batch = batch_of({{4, 5, 6}}, {{5, 6}});
  const Tensor mean = weights(*model, batch), first = weights(*model, batch, {.layer = 1, .head = 0}),
               second = weights(*model, batch, {.layer = 1, .head = 1});
  for (int64_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean.data<float>()[i], (first.data<float>()[i] + second.data<float>()[i]) / 2, 1e-6);
  }
  EXPECT_EQ(error_of([&] { weights(*model, batch, {.layer = 2}); }), "align: layer is 2, expected 0 to 1, or -1");
  EXPECT_EQ(error_of([&] { weights(*model, batch, {.head = 5}); }), "align: head is 5, expected 0 to 1, or -1");
  const auto language = small_model(Kind::decoder, 9, 2);
  EXPECT_EQ(error_of([&] {
              weights(*language, data::pair_batch(std::vector<data::TokenPair>{{{}, {5, 6}}}, std::vector<size_t>{0}));
            }),
            "align: the model has no cross-attention to align by");
}

// Teacher forcing gives the weights of step by step decoding.
TEST_F(AlignTest, StepsSeeWhatOnePassSees) {
  const auto model = small_model(Kind::encoder_decoder, 9, 3);
  const data::Batch batch = batch_of({{4, 5, 6}}, {{5, 6, 8}});
  WeightRecorder whole(nn::AttentionRole::cross, parallel_), steps(nn::AttentionRole::cross, parallel_);
  nn::Pass p = pass(&whole), q = pass(&steps);
  model->logits(p, data::source_tokens(batch), data::target_tokens(batch));
  nn::State state = model->begin(q, data::source_tokens(batch));
  for (int32_t id : batch.target_in) model->step(q, Tensor::full({1, 1}, id, DType::i32), state);
  ASSERT_EQ(whole.layers().size(), 2u);
  ASSERT_EQ(steps.layers().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Tensor &a = whole.layers()[i].weights, &b = steps.layers()[i].weights;
    EXPECT_EQ(whole.layers()[i].path, "decoder." + std::to_string(i) + ".cross");
    ASSERT_EQ(a.shape(), b.shape());
    for (int64_t n = 0; n < a.size(); ++n) EXPECT_NEAR(a.data<float>()[n], b.data<float>()[n], 1e-5);
  }
}

TEST_F(AlignTest, AModelInDoubleIsRecordedInF32) {
  const auto model = small_model(Kind::encoder_decoder, 9, 3);
  const auto twin = models::make_model(model->options(), 3, DType::f64);
  for (const auto& entry : model->parameters().entries()) {
    twin->parameters().find(entry.name)->value.copy_from(entry.value.converted(DType::f64));
  }
  const data::Batch batch = batch_of({{4, 5, 6}}, {{5, 6, 8}});
  WeightRecorder single(nn::AttentionRole::cross, parallel_), exact(nn::AttentionRole::cross, parallel_);
  nn::Pass p = pass(&single), q = pass(&exact);
  model->logits(p, data::source_tokens(batch), data::target_tokens(batch));
  twin->logits(q, data::source_tokens(batch), data::target_tokens(batch));
  ASSERT_EQ(exact.layers().size(), single.layers().size());
  for (size_t i = 0; i < exact.layers().size(); ++i) {
    const Tensor &a = single.layers()[i].weights, &b = exact.layers()[i].weights;
    ASSERT_EQ(b.dtype(), DType::f32);
    ASSERT_EQ(a.shape(), b.shape());
    for (int64_t n = 0; n < a.size(); ++n) EXPECT_NEAR(a.data<float>()[n], b.data<float>()[n], 1e-5);
  }
}

TEST_F(AlignTest, PiecesOfAWordVoteTogether) {
  // Source words 0 0 1 and the end, target words 0 1 1 and the end.
  const std::vector<float> numbers{.3f, .3f, .4f, 0,    // word 0 attends to the pieces of word 0, summed
                                   .1f, .1f, .2f, .6f,  // the end of the sentence is no word
                                   .3f, .1f, .6f, 0,    //
                                   0,   0,   0,   1};
  const Tensor weights = Tensor::of({1, 4, 4}, std::span<const float>(numbers));
  EXPECT_EQ(text::to_string(align_words(weights, 0, {{0, 0, 1, -1}, {0, 1, 1, -1}})), "0-0 1-1");
  EXPECT_TRUE(align_words(weights, 0, {{-1}, {-1}}).empty());
}

}  // namespace
}  // namespace heed::analysis
