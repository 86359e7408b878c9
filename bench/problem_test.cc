// SPDX-License-Identifier: Apache-2.0
#include "bench/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heed::bench {
namespace {

double largest(const View<const float, 4>& x) {
  double m = 0;
  for (int64_t b = 0; b < x.shape(0); ++b)
    for (int64_t h = 0; h < x.shape(1); ++h)
      for (int64_t t = 0; t < x.shape(2); ++t)
        for (int64_t d = 0; d < x.shape(3); ++d) m = std::max(m, std::abs(double{x(b, h, t, d)}));
  return m;
}

double largest_norm(const View<const float, 4>& x) {  // of a row
  double m = 0;
  for (int64_t b = 0; b < x.shape(0); ++b)
    for (int64_t h = 0; h < x.shape(1); ++h)
      for (int64_t t = 0; t < x.shape(2); ++t) {
        double squares = 0;
        for (int64_t d = 0; d < x.shape(3); ++d) squares += std::pow(x(b, h, t, d), 2);
        m = std::max(m, std::sqrt(squares));
      }
  return m;
}

std::vector<float> values(const View<const float, 4>& x) {
  std::vector<float> all;
  for (int64_t b = 0; b < x.shape(0); ++b)
    for (int64_t h = 0; h < x.shape(1); ++h)
      for (int64_t t = 0; t < x.shape(2); ++t) all.insert(all.end(), x.at(b, h, t), x.at(b, h, t) + x.shape(3));
  return all;
}

// How far apart two ways to solve the same problem may be. In either a score has at most D + 8 roundings of scale *
// sum |q k| <= scale |q| |k|, counted twice as it is in the normaliser too; a weight and an output have S + 8 more
// each.
double rounding_bound(const Problem& problem) {
  const kernels::AttentionInputs& in = problem.inputs();
  const double D = static_cast<double>(in.q.shape(3)), S = static_cast<double>(in.k.shape(2));
  const double size = largest_norm(in.q) * largest_norm(in.k.rows()) / std::sqrt(D);
  return 2 * std::expm1(0x1p-24 * ((D + 8) * 2 * size + 2 * (S + 8))) * largest(in.v.rows());
}

TEST(Problem, FusedAndUnfusedAgree) {
  for (Case c : {Case{}, Case{.layout = Layout::bthd}, Case{.layout = Layout::packed}, Case{.Hk = 2},
                 Case{.mask = MaskKind::causal}, Case{.mask = MaskKind::window128}, Case{.mask = MaskKind::lengths}}) {
    c.B = 2, c.T = c.S = 200;
    SCOPED_TRACE(name({Pass::forward, c}));
    Parallel parallel(1);
    Problem problem(c, parallel);
    problem.forward();
    const std::vector<float> fused = values(problem.outputs().out);
    problem.unfused()->forward();
    const std::vector<float> unfused = values(problem.outputs().out);
    const double bound = rounding_bound(problem);
    for (size_t i = 0; i < fused.size(); ++i) ASSERT_LE(std::abs(double{fused[i]} - double{unfused[i]}), bound) << i;
    EXPECT_GT(largest(problem.outputs().out), 100 * bound);  // so that the comparison says something
  }
}

TEST(Problem, ExtrasChangeTheResultOrOnlyLook) {
  Parallel parallel(1);
  const auto forward = [&](Extra extra) {
    Problem problem({.T = 128, .S = 128, .extra = extra}, parallel);
    problem.forward();
    return values(problem.outputs().out);
  };
  const std::vector<float> plain = forward(Extra::none);
  for (Extra extra : {Extra::alibi, Extra::dense, Extra::bias, Extra::dropout, Extra::softcap, Extra::additive}) {
    EXPECT_NE(forward(extra), plain) << to_string(extra);
  }
  const double bound = rounding_bound(Problem({.T = 128, .S = 128}, parallel));
  for (Extra extra : {Extra::top8, Extra::map256}) {
    const std::vector<float> out = forward(extra);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_LE(std::abs(double{out[i]} - double{plain[i]}), bound) << i;
  }
}

TEST(Problem, HasNoUnfusedTwinWithAnExtra) {
  Parallel parallel(1);
  EXPECT_EQ(Problem({.extra = Extra::softcap}, parallel).unfused(), nullptr);
  EXPECT_NE(Problem({.keys = DType::bf16}, parallel).unfused(), nullptr);
}

TEST(Problem, ADenseMaskHidesATenth) {
  Parallel parallel(1);
  const Problem problem({.extra = Extra::dense}, parallel);
  const View<const bool, 4> visible = problem.options().mask.dense->visible;
  ASSERT_EQ(visible.shape(), (Dims<4>{1, 8, 512, 512}));
  const auto hidden = static_cast<double>(std::count(visible.data(), visible.data() + visible.size(), false));
  const double pairs = 8 * 512 * 512;
  EXPECT_NEAR(hidden / pairs, 0.1, 6 * std::sqrt(0.1 * 0.9 / pairs));  // six standard deviations
}

TEST(Problem, BlocksHoldTheSameRowsInRandomOrder) {
  Parallel parallel(1);
  Problem plain({.T = 1, .S = 4096}, parallel);
  plain.forward();
  const std::vector<float> expected = values(plain.outputs().out);
  const double bound = rounding_bound(plain);
  EXPECT_GT(largest(plain.outputs().out), 10 * bound);
  for (const auto& [extra, rows] : {std::pair{Extra::paged16, 16}, std::pair{Extra::paged128, 128}}) {
    Problem problem({.T = 1, .S = 4096, .extra = extra}, parallel);
    const kernels::KvView& k = problem.inputs().k;
    EXPECT_EQ(k.block_rows(), rows);
    ASSERT_EQ(k.table().shape(), (Dims<2>{1, 4096 / rows}));
    std::vector<int32_t> blocks(k.table().data(), k.table().data() + k.table().size());
    EXPECT_FALSE(std::is_sorted(blocks.begin(), blocks.end()));
    std::sort(blocks.begin(), blocks.end());
    for (size_t i = 0; i < blocks.size(); ++i) ASSERT_EQ(blocks[i], static_cast<int32_t>(i));
    for (const Bytes& bytes : problem.keys_and_values()) EXPECT_EQ(bytes.size(), 4096u * 8 * 64 * 4);
    problem.forward();
    const std::vector<float> out = values(problem.outputs().out);
    for (size_t i = 0; i < out.size(); ++i) ASSERT_LE(std::abs(double{out[i]} - double{expected[i]}), bound) << i;
  }
}

TEST(Problem, LooksAtEveryRow) {
  Parallel parallel(1);
  const Case c{.T = 300, .S = 300};
  Problem top({.T = 300, .S = 300, .extra = Extra::top8}, parallel);
  top.forward();
  const kernels::AttentionOutputs& seen = top.outputs();
  for (int64_t h = 0; h < c.H; ++h)
    for (int64_t t = 0; t < c.T; ++t) {
      ASSERT_GT(seen.entropy(0, h, t), 0);
      ASSERT_LE(seen.entropy(0, h, t), std::log(300.0f));
      for (int64_t i = 1; i < 8; ++i) ASSERT_LE(seen.top_weights(0, h, t, i), seen.top_weights(0, h, t, i - 1));
      ASSERT_GT(seen.top_weights(0, h, t, 7), 0);
    }
  Problem map({.T = 300, .S = 300, .extra = Extra::map256}, parallel);
  map.forward();
  const kernels::AttentionObservations& pooled = map.observations();
  for (int64_t h = 0; h < c.H; ++h) {
    // Each of the T rows sums to 1, wrong by fewer than S roundings of numbers of at most 1; their sums by as many.
    const float* received = pooled.received.at(0, h);
    EXPECT_NEAR(std::accumulate(received, received + c.S, 0.0), 300, 300 * 600 * 0x1p-24);
    for (int64_t i = 0; i < 256 * 256; ++i) {  // a mean is of at most four weights: fewer than eight roundings
      ASSERT_GT(pooled.map_mean.at(0, h)[i], 0);
      ASSERT_LE(pooled.map_mean.at(0, h)[i], pooled.map_max.at(0, h)[i] * (1 + 0x1p-21f));
    }
  }
}

TEST(Problem, BackwardOfExtrasGivesTheirGradients) {
  Parallel parallel(1);
  for (Extra extra : {Extra::bias, Extra::dropout, Extra::softcap}) {
    Problem problem({.T = 100, .S = 100, .extra = extra}, parallel);
    problem.forward_with_stats();
    problem.backward();
    EXPECT_GT(largest(problem.gradients().dq), 0) << to_string(extra);
    EXPECT_EQ(problem.gradients().d_bias.empty(), extra != Extra::bias);
    if (extra == Extra::bias) {
      EXPECT_GT(largest(problem.gradients().d_bias), 0);
    }
  }
}

TEST(Problem, LayoutsAreWhatTheirNamesSay) {
  Parallel parallel(1);
  const Problem bhtd(Case{}, parallel), bthd(Case{.layout = Layout::bthd}, parallel);
  const Problem packed(Case{.layout = Layout::packed}, parallel);
  EXPECT_EQ(bhtd.inputs().k.strides(), (Dims<4>{8 * 512 * 64, 512 * 64, 64, 1}));
  EXPECT_EQ(bthd.inputs().k.strides(), (Dims<4>{512 * 8 * 64, 64, 8 * 64, 1}));
  EXPECT_EQ(packed.inputs().k.strides(), (Dims<4>{512 * 24 * 64, 64, 24 * 64, 1}));
  EXPECT_EQ(packed.inputs().k.rows().data(), packed.inputs().q.data() + 8 * 64);
}

}  // namespace
}  // namespace heed::bench
