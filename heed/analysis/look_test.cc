// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/look.h"

#include <gtest/gtest.h>

#include <numeric>

#include "heed/data/testing.h"

namespace heed::analysis {
namespace {

using Kind = models::TransformerKind;

TEST(Look, OfASourceWordIsOneNumberAWordAndOneForTheEnd) {
  const auto model = data::testing::small_model(Kind::encoder_decoder, 9, 1);
  Parallel parallel(1);
  Workspace workspace;
  nn::Pass pass{{parallel, workspace}};
  const std::vector<int32_t> source = {4, 5, 6, 7};
  const std::vector<int64_t> apart = {0, 1, 2, 3}, joined = {0, 1, 1, 2};  // one token a word; two make up the second
  const auto one = source_looks(pass, *model, source, apart, 4, 1),
             two = source_looks(pass, *model, source, apart, 4, 2),
             both = source_looks(pass, *model, source, joined, 3, 1);
  ASSERT_EQ(one.size(), 4u);  // two layers of two heads
  EXPECT_EQ(one[3].layer, "encoder.1.self");
  EXPECT_EQ(one[3].head, 1);
  for (size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].look.size(), 5u);
    EXPECT_NEAR(std::accumulate(one[i].look.begin(), one[i].look.end(), 0.0), 1, 1e-5);
    ASSERT_EQ(both[i].look.size(), 4u);
    const auto mean = [&](size_t word) { return (one[i].look[word] + two[i].look[word]) / 2; };
    EXPECT_NEAR(both[i].look[0], mean(0), 1e-6);
    EXPECT_NEAR(both[i].look[1], mean(1) + mean(2), 1e-6);
    EXPECT_NEAR(both[i].look[3], mean(4), 1e-6) << "the end";
  }
}

TEST(Look, OfATargetWordIsTheMeanOfItsTokens) {
  const Tensor weights = Tensor::of({1, 3, 3}, std::vector<float>{0.5f, 0.25f, 0.25f, 0, 1, 0, 0, 0, 1});
  const auto looks = target_looks(weights, {.source = {0, 0}, .target = {0, 0, -1}}, {.source = 1, .target = 1});
  ASSERT_EQ(looks.size(), 1u);
  EXPECT_EQ(looks[0], (Look{0.875, 0.125}));
}

}  // namespace
}  // namespace heed::analysis
