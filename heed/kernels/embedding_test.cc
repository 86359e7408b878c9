// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/embedding.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

std::vector<int32_t> draw_ids(int64_t n, int64_t vocabulary, Rng& rng) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocabulary)));
  return ids;
}

// A product with a factor that was rounded: two roundings. A sum of n terms: n more of each.
TEST(Embedding, IsNearTheTwin) {
  for_draws(60, [](Rng& rng) {
    const int64_t N = static_cast<int64_t>(rng.below(40)), vocabulary = 1 + draw_rows(rng), width = draw_width(rng);
    const double factor = rng.below(2) ? 1 : std::sqrt(static_cast<double>(width));
    const std::vector<int32_t> ids = draw_ids(N, vocabulary, rng);
    const View<const int32_t, 1> id_view(ids.data(), {N});
    const Rows table = Rows::normal(vocabulary, width, rng), dy = Rows::normal(N, width, rng);
    const Rows dtable = Rows::normal(vocabulary, width, rng);

    std::vector<double> table64 = table.doubles(), y(N * width), y_bound;
    std::vector<double> dy64 = dy.doubles(), want = dtable.doubles(), sizes = want;
    reference::embedding_forward(matrix(table64, vocabulary, width), id_view, factor, matrix(y, N, width));
    reference::embedding_backward(id_view, matrix(dy64, N, width), factor, matrix(want, vocabulary, width));
    for (const double value : y) y_bound.push_back(factor == 1 ? 0 : 2 * kUnit * std::abs(value));
    // The same sums of sizes.
    for (std::vector<double>* numbers : {&dy64, &sizes}) {
      for (double& value : *numbers) value = std::abs(value);
    }
    reference::embedding_backward(id_view, matrix(dy64, N, width), factor, matrix(sizes, vocabulary, width));
    for (double& size : sizes) size *= static_cast<double>(N + 2) * kUnit;
    for_targets([&] {
      Parallel parallel(2);
      Rows got(N, width, 1), got_table = dtable;
      embedding_forward(table.view(), id_view, factor, got.view(), parallel);
      embedding_backward(id_view, dy.view(), factor, got_table.view(), parallel);
      EXPECT_TRUE(within(got.floats(), y, y_bound)) << "y";
      EXPECT_TRUE(within(got_table.floats(), want, sizes)) << "dtable";
      EXPECT_TRUE(got.guards_are_whole() && got_table.guards_are_whole());
    });
  });
}

TEST(Embedding, RepeatedIdsGiveTheSameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(9));
  const int64_t N = 500;
  const std::vector<int32_t> ids = draw_ids(N, 5, rng);
  for (const int64_t width : {1, 64, 300}) {
    const Rows dy = Rows::normal(N, width, rng);
    expect_same_on_threads([&](Parallel& parallel) {
      Rows dtable(20, width);
      embedding_backward({ids.data(), {N}}, dy.view(), 1.5, dtable.view(), parallel);
      return dtable.floats();
    });
  }
}

TEST(Embedding, NaNStaysInItsRow) {
  for_targets([&] {
    Parallel parallel(1);
    const std::vector<int32_t> ids = {2, 0, 2};
    Rows table(3, 37), y(3, 37), dtable(3, 37);
    table(0, 36) = kNaN;
    embedding_forward(table.view(), {ids.data(), {3}}, 2, y.view(), parallel);
    embedding_backward({ids.data(), {3}}, y.view(), 2, dtable.view(), parallel);
    for (int64_t c = 0; c < 37; ++c) {
      EXPECT_EQ(std::isnan(y(1, c)), c == 36);
      EXPECT_EQ(std::isnan(dtable(0, c)), c == 36);
      EXPECT_TRUE(y(0, c) == 0 && dtable(1, c) == 0 && dtable(2, c) == 0);
    }
  });
}

}  // namespace
}  // namespace heed::kernels
