// SPDX-License-Identifier: Apache-2.0
#include "heed/dist/merge_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heed/base/testing.h"
#include "heed/base/workspace.h"
#include "heed/kernels/attention/testing.h"

namespace heed::dist {
namespace {

using heed::testing::error_of;
using heed::testing::seeded;
using kernels::AttentionInputs;
using kernels::AttentionOutputs;
using kernels::AttentionShape;
namespace attention_testing = kernels::attention_testing;
using attention_testing::same_bits;

constexpr double kUnit = 0x1p-24;

// Everything that forward tells of rows, in memory of its own.
struct Told {
  std::vector<float> out, lse, stats, entropy, top_weights;
  std::vector<int32_t> top_keys;
  AttentionOutputs views;

  Told(const AttentionShape& n, int64_t K) {
    const auto rows = static_cast<size_t>(n.B * n.Hq * n.T);
    out.resize(rows * static_cast<size_t>(n.Dv)), stats.resize(2 * rows), lse.resize(rows), entropy.resize(rows);
    top_weights.resize(rows * static_cast<size_t>(K)), top_keys.resize(top_weights.size());
    views = {.out = {out.data(), {n.B, n.Hq, n.T, n.Dv}},
             .lse = {lse.data(), {n.B, n.Hq, n.T}},
             .stats = {stats.data(), {n.B, n.Hq, n.T, 2}},
             .entropy = {entropy.data(), {n.B, n.Hq, n.T}},
             .top_weights = {top_weights.data(), {n.B, n.Hq, n.T, K}},
             .top_keys = {top_keys.data(), {n.B, n.Hq, n.T, K}}};
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
};

// Keys [begin, end) of the problem alone, under its lengths.
void forward_over(const attention_testing::Problem& problem, int64_t begin, int64_t end, const Told& told,
                  Parallel& parallel) {
  AttentionInputs in = problem.inputs();
  in.k = problem.k.slice(2, begin, end - begin), in.v = problem.v.slice(2, begin, end - begin);
  kernels::AttentionOptions options;
  options.scale = problem.options().scale;
  std::vector<int64_t> lengths;
  if (problem.instance.mask.lengths) {
    for (const int64_t n : *problem.instance.mask.lengths) {
      lengths.push_back(std::clamp<int64_t>(n - begin, 0, end - begin));
    }
    options.mask = kernels::Lengths{lengths};
  }
  Workspace workspace;
  attention_forward(in, told.views, options, workspace, parallel);
}

void merge_pieces(const attention_testing::Problem& problem, const std::vector<int64_t>& ends, const Told& merged,
                  Parallel& parallel) {
  const int64_t K = merged.views.top_keys.shape(3);
  clear_rows(merged.views);
  int64_t begin = 0;
  for (const int64_t end : ends) {
    const Told part(problem.instance.shape, K);
    forward_over(problem, begin, end, part, parallel);
    merge_rows(merged.views, part.views, begin, parallel);
    begin = end;
  }
}

// The largest sum_d |q_d k_d| of any pair, scaled: what the roundings of its score are proportional to.
double largest_score(const attention_testing::Problem& problem, const attention_testing::Twin& twin) {
  const AttentionShape& n = problem.instance.shape;
  double largest = 0;
  for (int64_t head = 0; head < n.B * n.Hq; ++head) {
    const int64_t keys = (head / n.Hq * n.Hk + head % n.Hq / problem.instance.group()) * n.S;
    for (int64_t t = 0; t < n.T; ++t) {
      for (int64_t s = 0; s < n.S; ++s) {
        double size = 0;
        for (int64_t d = 0; d < n.D; ++d) {
          size += std::abs(twin.q[static_cast<size_t>((head * n.T + t) * n.D + d)] *
                           twin.k[static_cast<size_t>((keys + s) * n.D + d)]);
        }
        largest = std::max(largest, size);
      }
    }
  }
  return largest * std::abs(problem.instance.score_scale());
}

// Keys in pieces, merged, against the twin over all of them, in double. By error_bounds.h of the kernels, with the
// largest score of all for each: a weight's logarithm is wrong by (D + 8) u of its score, and u (distance + 5); so is
// its row's sum, by S + 8 units more, and the sum over values adds S + 12. A merge adds six: of a sum, a quotient, two
// products, and of what is added.
TEST(MergeRows, PiecesMakeTheWhole) {
  Parallel one(1);
  Rng rng(seeded(21));
  for (int draw = 0; draw < 60; ++draw) {
    const int64_t S = 1 + static_cast<int64_t>(rng.below(120)), K = static_cast<int64_t>(rng.below(6));
    attention_testing::Instance x{.shape = {2, 2, 2, 1 + static_cast<int64_t>(rng.below(40)), S, 5, 9}};
    x.seed = rng.below(1 << 30);
    if (rng.below(2)) {
      const auto length = [&] { return static_cast<int64_t>(rng.below(static_cast<uint64_t>(S + 1))); };
      x.mask.lengths = std::vector<int64_t>{length(), length()};
    }
    SCOPED_TRACE(x.describe());
    const attention_testing::Problem problem(x);
    const attention_testing::Twin twin = run_twin(problem);
    std::vector<int64_t> ends{S};
    for (uint64_t cuts = rng.below(5); cuts > 0; --cuts) ends.push_back(static_cast<int64_t>(rng.below(S + 1)));
    std::sort(ends.begin(), ends.end());
    const Told merged(x.shape, K);
    merge_pieces(problem, ends, merged, one);

    const double score = largest_score(problem, twin), merges = static_cast<double>(ends.size());
    const double log_error = static_cast<double>(x.shape.D + 8) * score + 2 * score + 5;
    const double bound = (2 * log_error + 2 * static_cast<double>(S) + 20 + 6 * merges) * kUnit;
    for (size_t i = 0; i < merged.out.size(); ++i) {
      const size_t row = i / 9, b = row / static_cast<size_t>(2 * x.shape.T), h = row / x.shape.T % 2;
      double size = 0;  // the largest value that may be in the sum
      for (int64_t s = 0; s < S; ++s) size = std::max(size, std::abs(double{problem.v(b, h, s, i % 9)}));
      ASSERT_NEAR(merged.out[i], twin.out[i], bound * size) << i;
    }
    for (size_t row = 0; row < merged.lse.size(); ++row) {
      if (std::isinf(twin.lse[row])) {
        ASSERT_EQ(merged.lse[row], -std::numeric_limits<float>::infinity());
        ASSERT_EQ(merged.stats[2 * row + 1], 0.0f);
        continue;
      }
      ASSERT_NEAR(merged.lse[row], twin.lse[row], bound + 4 * kUnit * std::abs(twin.lse[row]));
      ASSERT_NEAR(std::log(2) * (merged.stats[2 * row] + std::log2(double{merged.stats[2 * row + 1]})), twin.lse[row],
                  bound);
    }
  }
}

// What forward tells of rows in one call is what it tells in pieces.
TEST(MergeRows, EntropyAndStrongestKeysAreThoseOfOneCall) {
  Parallel one(1);
  const int64_t S = 300, K = 7;
  attention_testing::Instance x{.shape = {2, 4, 2, 33, S, 16, 16}};
  x.mask.lengths = std::vector<int64_t>{S, 70};
  const attention_testing::Problem problem(x);
  const Told whole(x.shape, K), merged(x.shape, K);
  forward_over(problem, 0, S, whole, one);
  merge_pieces(problem, {64, 65, 200, 200, S}, merged, one);
  // Weights: sums of S terms, twice; entropies: as many weights times logarithms of at most ln S.
  const double weight_error = 4 * static_cast<double>(S) * kUnit, entropy_error = weight_error * std::log(S);
  for (size_t i = 0; i < whole.entropy.size(); ++i) ASSERT_NEAR(whole.entropy[i], merged.entropy[i], entropy_error);
  for (size_t i = 0; i < whole.top_weights.size(); ++i) {
    ASSERT_NEAR(whole.top_weights[i], merged.top_weights[i], weight_error * whole.top_weights[i]) << i;
    ASSERT_EQ(whole.top_keys[i], merged.top_keys[i]) << i;
  }
}

TEST(MergeRows, AnEmptySideChangesNoBit) {
  Parallel one(1);
  const attention_testing::Problem problem({.shape = {1, 2, 2, 10, 40, 8, 8}});
  const Told whole(problem.instance.shape, 3), nothing(problem.instance.shape, 3), merged(problem.instance.shape, 3);
  forward_over(problem, 0, 40, whole, one);
  clear_rows(nothing.views), clear_rows(merged.views);
  merge_rows(merged.views, nothing.views, 0, one);
  EXPECT_EQ(merged.stats, nothing.stats);
  merge_rows(merged.views, whole.views, 0, one);
  merge_rows(merged.views, nothing.views, 40, one);
  EXPECT_TRUE(same_bits(merged.out, whole.out));
  EXPECT_TRUE(same_bits(merged.stats, whole.stats));
  EXPECT_TRUE(same_bits(merged.entropy, whole.entropy));
  EXPECT_TRUE(same_bits(merged.top_weights, whole.top_weights));
  EXPECT_EQ(merged.top_keys, whole.top_keys);
}

// Scores of 1000 and more apart: the weaker side vanishes, but for a NaN that its rows see.
TEST(MergeRows, AVanishingShareIsZeroAndANaNShows) {
  Parallel one(1);
  float q[] = {1}, k[] = {3000, 0, 0}, v[] = {5, 7, std::numeric_limits<float>::quiet_NaN()};
  const auto forward = [&](int64_t begin, int64_t count, const Told& told) {
    const View<float, 4> keys(k + begin, {1, 1, count, 1}), values(v + begin, {1, 1, count, 1});
    Workspace workspace;
    attention_forward({.q = View<float, 4>(q, {1, 1, 1, 1}), .k = keys, .v = values}, told.views, {}, workspace, one);
  };
  const AttentionShape n{.B = 1, .Hq = 1, .Hk = 1, .T = 1, .S = 3, .D = 1, .Dv = 1};
  const Told rows(n, 1), weak(n, 1), spoilt(n, 1);
  forward(0, 1, rows), forward(1, 1, weak), forward(2, 1, spoilt);
  const float certain = rows.entropy[0];
  merge_rows(rows.views, weak.views, 1, one);
  EXPECT_EQ(rows.out[0], 5);
  EXPECT_EQ(rows.entropy[0], certain);
  EXPECT_EQ(rows.top_keys[0], 0);
  merge_rows(rows.views, spoilt.views, 2, one);
  EXPECT_TRUE(std::isnan(rows.out[0]));
}

TEST(MergeRows, TheSameBitsForAnyNumberOfThreads) {
  Parallel one(1), three(3);
  const attention_testing::Problem problem({.shape = {3, 4, 2, 100, 90, 8, 8}});
  const Told alone(problem.instance.shape, 4), together(problem.instance.shape, 4);
  merge_pieces(problem, {30, 90}, alone, one);
  merge_pieces(problem, {30, 90}, together, three);
  EXPECT_TRUE(same_bits(alone.out, together.out));
  EXPECT_TRUE(same_bits(alone.entropy, together.entropy));
  EXPECT_EQ(alone.top_keys, together.top_keys);
}

TEST(MergeRows, BadShapesAreNamed) {
  Parallel one(1);
  const AttentionShape n{.B = 1, .Hq = 2, .Hk = 2, .T = 3, .S = 5, .D = 4, .Dv = 4};
  const Told rows(n, 2);
  AttentionShape longer = n;
  longer.T = 4;
  const Told other(longer, 2);
  EXPECT_EQ(error_of([&] { merge_rows(rows.views, other.views, 0, one); }),
            "merge_rows: out of the part has shape [1, 2, 4, 4], expected [1, 2, 3, 4]");
  AttentionOutputs half = rows.views;
  half.top_weights = {};
  EXPECT_EQ(error_of([&] { merge_rows(half, rows.views, 0, one); }),
            "merge_rows: one of top_weights and top_keys is empty, expected both or neither");
  half = rows.views, half.stats = {};
  EXPECT_EQ(error_of([&] { merge_rows(rows.views, half, 0, one); }),
            "merge_rows: stats of the part has shape [0, 0, 0, 0], expected [1, 2, 3, 2]");
}

}  // namespace
}  // namespace heed::dist
