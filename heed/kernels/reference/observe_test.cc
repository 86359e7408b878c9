// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/observe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

struct Observed {
  Array<3> entropy;
  Array4 top_weights;
  std::vector<int32_t> top_keys;
  Array<3> received;
  Array4 map_mean, map_max;
};

// The K strongest keys and a map of M x N. Outputs start as NaN: whatever is not written shows.
Observed observe(const Array4& weights, int64_t K, int64_t M, int64_t N) {
  const auto [B, H, T, S] = weights.shape;
  Observed o{Array<3>({B, H, T}, kNaN),
             Array4({B, H, T, K}, kNaN),
             std::vector<int32_t>(static_cast<size_t>(B * H * T * K), -7),
             Array<3>({B, H, S}, kNaN),
             Array4({B, H, M, N}, kNaN),
             Array4({B, H, M, N}, kNaN)};
  attention_observe(weights.view(), {.entropy = o.entropy.view(),
                                     .top_weights = o.top_weights.view(),
                                     .top_keys = {o.top_keys.data(), {B, H, T, K}},
                                     .received = o.received.view(),
                                     .map_mean = o.map_mean.view(),
                                     .map_max = o.map_max.view()});
  return o;
}

TEST(ReferenceObserve, ThreeRows) {
  // Rows (1/2, 1/4, 1/4, 0), (0, 0, 0, 1) and one that sees nothing.
  const Array4 weights({1, 1, 3, 4}, {0.5, 0.25, 0.25, 0, 0, 0, 0, 1, 0, 0, 0, 0});
  const Observed o = observe(weights, 3, 1, 2);
  expect_near(o.entropy.data, {1.5 * kLn2, 0, 0});  // 1/2 ln 2 + 2 * 1/4 ln 4
  expect_near(o.top_weights.data, {0.5, 0.25, 0.25, 1, 0, 0, 0, 0, 0});
  EXPECT_EQ(o.top_keys, (std::vector<int32_t>{0, 1, 2, 3, -1, -1, -1, -1, -1}));
  expect_near(o.received.data, {0.5, 0.25, 0.25, 1});
  expect_near(o.map_mean.data, {0.75 / 6, 1.25 / 6});  // each cell: 3 queries, 2 keys
  expect_near(o.map_max.data, {0.5, 1});
}

TEST(ReferenceObserve, TheEntropyOfEqualWeightsIsTheLogOfTheirNumber) {
  EXPECT_NEAR(observe(Array4({1, 1, 1, 5}, 0.2), 1, 1, 1).entropy.data[0], std::log(5), 1e-15);
}

TEST(ReferenceObserve, OfEqualsTheLowerKeyIsFirst) {
  const Observed o = observe(Array4({1, 1, 1, 6}, {0.125, 0.25, 0.125, 0.25, 0, 0.25}), 4, 1, 1);
  expect_near(o.top_weights.data, {0.25, 0.25, 0.25, 0.125});
  EXPECT_EQ(o.top_keys, (std::vector<int32_t>{1, 3, 5, 0}));
}

TEST(ReferenceObserve, BatchesAndHeadsApart) {
  // One query over two keys; two batches of two heads.
  const Observed o = observe(Array4({2, 2, 1, 2}, {1, 0, 0, 1, 0.25, 0.75, 0.5, 0.5}), 1, 1, 1);
  EXPECT_EQ(o.top_keys, (std::vector<int32_t>{0, 1, 1, 0}));
  expect_near(o.top_weights.data, {1, 1, 0.75, 0.5});
  expect_near(o.received.data, {1, 0, 0, 1, 0.25, 0.75, 0.5, 0.5});
  expect_near(o.map_mean.data, {0.5, 0.5, 0.5, 0.5});
  expect_near(o.map_max.data, {1, 1, 0.75, 0.5});
}

TEST(ReferenceObserve, CellsThatDoNotDivideEvenly) {
  // Five keys in two cells: [0, 2) and [2, 5). Five queries in three: [0, 1), [1, 3), [3, 5). Query t gives all to key
  // t.
  Array4 weights({1, 1, 5, 5});
  for (int64_t t = 0; t < 5; ++t) weights.view()(0, 0, t, t) = 1;
  const Observed o = observe(weights, 1, 3, 2);
  // Query 0 in its 1 x 2 cell; queries 1, 2 one in each of 2 x 2 and 2 x 3; queries 3, 4 both in 2 x 3.
  expect_near(o.map_mean.data, {1.0 / 2, 0, 1.0 / 4, 1.0 / 6, 0, 2.0 / 6});
  expect_near(o.map_max.data, {1, 0, 1, 1, 0, 1});
}

TEST(ReferenceObserve, AMapLargerThanTheMatrixRepeatsIt) {
  // Rows i * 2 / 3 = 0, 0, 1 and columns j * 2 / 4 = 0, 0, 1, 1 of it.
  const Observed o = observe(Array4({1, 1, 2, 2}, {0.25, 0.75, 0.5, 0.5}), 1, 3, 4);
  const std::vector<double> expected{0.25, 0.25, 0.75, 0.75, 0.25, 0.25, 0.75, 0.75, 0.5, 0.5, 0.5, 0.5};
  // Row 0 is queries [0, 2/3), widened to [0, 1); row 1 is [2/3, 4/3), rounded down to [0, 1).
  expect_near(o.map_mean.data, expected);
  expect_near(o.map_max.data, expected);
}

TEST(ReferenceObserve, NoQueriesOrNoKeys) {
  const Observed no_queries = observe(Array4({1, 1, 0, 2}), 1, 1, 1), no_keys = observe(Array4({1, 1, 2, 0}), 1, 1, 1);
  expect_near(no_queries.received.data, {0, 0});
  expect_near(no_keys.entropy.data, {0, 0});
  EXPECT_EQ(no_keys.top_keys, (std::vector<int32_t>{-1, -1}));
  for (const auto& map : {no_queries.map_mean, no_queries.map_max, no_keys.map_mean, no_keys.map_max}) {
    expect_near(map.data, {0});
  }
}

TEST(ReferenceObserve, NaNReachesWhatItTouches) {
  const Observed o = observe(Array4({1, 1, 2, 4}, {0, kNaN, kNaN, 0, 0.5, 0.5, 0, 0}), 2, 1, 2);
  expect_near(o.entropy.data, {kNaN, kLn2});
  expect_near(o.top_weights.data, {kNaN, kNaN, 0.5, 0.5});
  EXPECT_EQ(o.top_keys, (std::vector<int32_t>{1, 2, 0, 1}));
  expect_near(o.received.data, {0.5, kNaN, kNaN, 0});
  expect_near(o.map_mean.data, {kNaN, kNaN});
  expect_near(o.map_max.data, {kNaN, kNaN});
}

TEST(ReferenceObserve, OnlyWhatIsWanted) {
  const Array4 weights({1, 1, 1, 2}, {0.25, 0.75});
  std::vector<int32_t> keys(2);
  Array4 top({1, 1, 1, 2});
  attention_observe(weights.view(), {});
  attention_observe(weights.view(), {.top_keys = {keys.data(), {1, 1, 1, 2}}});
  EXPECT_EQ(keys, (std::vector<int32_t>{1, 0}));
  attention_observe(weights.view(), {.top_weights = top.view()});
  expect_near(top.data, {0.75, 0.25});
}

TEST(ReferenceObserve, StridedWeights) {
  // [B,T,S,H] in memory: head 0 is (1/4, 3/4), head 1 is (1, 0).
  const std::vector<double> data{0.25, 1, 0.75, 0};
  Array<3> received({1, 2, 2}), entropy({1, 2, 1});
  attention_observe({data.data(), {1, 2, 1, 2}, {4, 1, 4, 2}},
                    {.entropy = entropy.view(), .received = received.view()});
  expect_near(received.data, {0.25, 0.75, 1, 0});
  expect_near(entropy.data, {2 * kLn2 - 0.75 * kLn3, 0});  // 1/4 ln 4 + 3/4 (ln 4 - ln 3)
}

TEST(ReferenceObserve, Errors) {
  const Array4 weights({1, 2, 3, 4});
  Array4 bad4({1, 1, 3, 4}), top({1, 2, 3, 2});
  Array<3> bad3({1, 2, 5});
  std::vector<int32_t> keys(18);
  const auto error = [&](const Observations& o) { return error_of([&] { attention_observe(weights.view(), o); }); };
  EXPECT_EQ(error({.entropy = bad3.view()}), "attention: entropy has shape [1, 2, 5], expected [1, 2, 3]");
  EXPECT_EQ(error({.received = bad3.view()}), "attention: received has shape [1, 2, 5], expected [1, 2, 4]");
  EXPECT_EQ(error({.top_weights = bad4.view()}),
            "attention: top_weights has shape [1, 1, 3, 4], expected [1, 2, 3, K]");
  EXPECT_EQ(error({.top_weights = top.view(), .top_keys = {keys.data(), {1, 2, 3, 3}}}),
            "attention: top_keys has shape [1, 2, 3, 3], expected [1, 2, 3, 2]");
  EXPECT_EQ(error({.map_mean = bad4.view()}), "attention: map_mean has shape [1, 1, 3, 4], expected [1, 2, 3, 4]");
  EXPECT_EQ(error({.map_max = bad4.view()}), "attention: map_max has shape [1, 1, 3, 4], expected [1, 2, 3, 4]");
  EXPECT_EQ(error_of([] { attention_observe({nullptr, {1, 1, 1, 1}}, {}); }), "attention: weights has no data");
}

}  // namespace
}  // namespace heed::kernels::reference
