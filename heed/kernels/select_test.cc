// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/kernels/softmax.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace heed::kernels::testing;  // NOLINT(google-build-using-namespace)

// By sorting all of them.
std::vector<Ranked> sorted(const std::vector<float>& x, size_t most) {
  std::vector<Ranked> all;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > -kInfinity) all.push_back({x[i], static_cast<int32_t>(i)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) { return a.value > b.value; });
  all.resize(std::min(all.size(), most));
  return all;
}

void expect_selects(const std::vector<float>& x, size_t most) {
  const std::vector<Ranked> want = sorted(x, most);
  std::vector<Ranked> got(most);
  const RowSelection row = select_largest(x, got);
  ASSERT_EQ(row.found, std::ssize(want));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].index, want[i].index) << "place " << i << " of " << most << ", width " << x.size();
    EXPECT_EQ(got[i].value, want[i].value);
  }
}

TEST(Select, FindsWhatSortingFinds) {
  for_draws(60, [](Rng& rng) {
    const size_t width = 1 + rng.below(700), most = 1 + rng.below(40);
    std::vector<float> x(width);
    const bool coarse = rng.below(2) == 0;  // many equals
    for (float& value : x) value = coarse ? static_cast<float>(rng.below(9)) : rng.normal();
    if (rng.below(3) == 0) std::sort(x.begin(), x.end());  // each enters
    for_targets([&] { expect_selects(x, most); });
  });
}

TEST(Select, EdgesOfVectors) {
  for (const size_t width : {1u, 3u, 4u, 7u, 8u, 9u, 15u, 16u, 17u, 63u, 64u, 65u, 129u}) {
    std::vector<float> x(width);
    std::iota(x.begin(), x.end(), -20.0f);
    for_targets([&] {
      expect_selects(x, 1);
      expect_selects(x, width);
      expect_selects(x, width + 3);
    });
  }
}

TEST(Select, LeavesOutWhatIsNoNumberAndWhatCannotBe) {
  std::vector<float> x(40, -kInfinity);
  x[3] = 1, x[17] = 2, x[39] = -5;
  for_targets([&] { expect_selects(x, 5); });
  x[16] = kNaN;  // in the same vectors as others
  for_targets([&] {
    std::vector<Ranked> got(5);
    const RowSelection row = select_largest(x, got);
    ASSERT_EQ(row.found, 3);
    EXPECT_EQ(got[0].index, 17);
    EXPECT_EQ(got[1].index, 3);
    EXPECT_EQ(got[2].index, 39);
    EXPECT_TRUE(std::isnan(row.log_probability(2)));
  });
}

// To the same bits: what is chosen by a selection is what log-softmax says.
TEST(Select, LogProbabilitiesAreThoseOfLogSoftmax) {
  for_draws(40, [](Rng& rng) {
    const int64_t width = 1 + static_cast<int64_t>(rng.below(500));
    const Rows x = Rows::normal(1, width, rng, 3);
    Rows y(1, width);
    Parallel parallel(1);
    for_targets([&] {
      log_softmax_forward(x.view(), y.view(), parallel);
      const std::vector<float> row = x.floats();
      const RowSelection selection = select_largest(row, {});
      for (int64_t i = 0; i < width; ++i) EXPECT_EQ(selection.log_probability(row[static_cast<size_t>(i)]), y(0, i));
    });
  });
}

}  // namespace
}  // namespace heed::kernels
