// SPDX-License-Identifier: Apache-2.0
#include "heed/analysis/look.h"

#include <gtest/gtest.h>

namespace heed::analysis {
namespace {

TEST(Look, OfATargetWordIsTheMeanOfItsTokens) {
  const Tensor weights = Tensor::of({1, 3, 3}, std::vector<float>{0.5f, 0.25f, 0.25f, 0, 1, 0, 0, 0, 1});
  const auto looks = target_looks(weights, {.source = {0, 0}, .target = {0, 0, -1}}, {.source = 1, .target = 1});
  ASSERT_EQ(looks.size(), 1u);
  EXPECT_EQ(looks[0], (Look{0.875, 0.125}));
}

}  // namespace
}  // namespace heed::analysis
