// SPDX-License-Identifier: Apache-2.0
// Worked out by hand: what hides keys pair by pair or moves their scores, Dense, ALiBi and bias.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "heed/kernels/reference/attention.h"
#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

const Array4 kOnes({1, 1, 2, 1}, 1);

Arrays with_bias(const Array4& bias) { return {kQ, kK, kV, bias}; }

// ---- Dense ---------------------------------------------------------------------------------------------------------

TEST(ReferenceDense, OfEveryPair) {
  const std::array<bool, 4> visible{true, false, true, true};  // as causal does
  const Result r = run(kQ, kK, kV, masked(Dense{{visible.data(), {1, 1, 2, 2}}}));
  expect_near(r.masked.data, {0, -kInfinity, 0, 2 * kLn2});
  expect_near(r.weights.data, {1, 0, 1.0 / 5, 4.0 / 5});
  expect_near(r.out.data, {30, 54});
  expect_near(r.lse.data, {0, std::log(5)});
}

TEST(ReferenceDense, AnExtentOfOneServesAll) {
  const std::array<bool, 2> visible{false, true};
  // Of keys: both queries see the second only. Of queries: the first sees nothing.
  expect_near(run(kQ, kK, kV, masked(Dense{{visible.data(), {1, 1, 1, 2}}})).weights.data, {0, 1, 0, 1});
  const Result r = run(kQ, kK, kV, masked(Dense{{visible.data(), {1, 1, 2, 1}}}));
  expect_near(r.weights.data, {0, 0, 1.0 / 5, 4.0 / 5});
  expect_near(r.out.data, {0, 54});
  expect_near(r.lse.data, {-kInfinity, std::log(5)});

  // Of batches, and of heads: two of each, one query each.
  const Array4 q({2, 2, 1, 1}, 1), k({2, 1, 2, 1}, {0, kLn2, 0, kLn2}), v({2, 1, 2, 1}, {30, 60, 30, 60});
  expect_near(run(q, k, v, masked(Dense{{visible.data(), {2, 1, 1, 1}}})).out.data, {0, 0, 50, 50});
  expect_near(run(q, k, v, masked(Dense{{visible.data(), {1, 2, 1, 1}}})).out.data, {0, 50, 0, 50});
  expect_near(run(q, k, v, masked(Dense{{visible.data() + 1, {1, 1, 1, 1}}})).out.data, {50, 50, 50, 50});
}

TEST(ReferenceDense, AgreesWithTheOtherConstraints) {
  // Causal leaves (0) and (0, 1), Dense the second key: the first query sees nothing, the second the second key.
  const std::array<bool, 2> visible{false, true};
  const Result r = run(kQ, kK, kV, masked({Causal::top_left(), Dense{{visible.data(), {1, 1, 1, 2}}}}));
  expect_near(r.weights.data, {0, 0, 0, 1});
}

TEST(ReferenceDense, WhatItHidesIsNeverTouched) {
  const std::array<bool, 2> visible{true, false};
  const AttentionOptions options = masked(Dense{{visible.data(), {1, 1, 1, 2}}});
  const Arrays a{kQ, Array4({1, 1, 2, 1}, {0, kNaN}), Array4({1, 1, 2, 1}, {30, kNaN}),
                 Array4({1, 1, 1, 2}, {0, kNaN})};
  const Result r = run(a, options);
  expect_near(r.masked.data, {0, -kInfinity, 0, -kInfinity});
  expect_near(r.weights.data, {1, 0, 1, 0});
  expect_near(r.out.data, {30, 30});
  expect_near(r.raw.data, {0, kNaN, 0, kNaN});  // this stage is of every pair
  const Gradient g = run_backward(a, kOnes, options);
  expect_near(g.dv.data, {2, 0});
  for (const auto& d : {g.dq, g.dk, g.d_bias}) expect_near(d.data, {0, 0});
}

// ---- ALiBi ---------------------------------------------------------------------------------------------------------

// All scores are 0, so that what is left is -slope |p - s|.
Result run_alibi(int64_t B, int64_t T, int64_t S, const Mask& mask) {
  return run(Array4({B, 2, T, 1}, 0), Array4({B, 2, S, 1}, 0), Array4({B, 2, S, 1}, 1), masked(mask));
}

const std::array<float, 2> kSlopes{0.5f, 0.25f};

TEST(ReferenceAlibi, CountsFromItsAlignment) {
  expect_near(run_alibi(1, 2, 3, Alibi::top_left(kSlopes)).masked.data,  // p = 0, 1
              {0, -0.5, -1, -0.5, 0, -0.5, 0, -0.25, -0.5, -0.25, 0, -0.25});
  expect_near(run_alibi(1, 2, 3, Alibi::bottom_right(kSlopes)).masked.data,  // p = 1, 2
              {-0.5, 0, -0.5, -1, -0.5, 0, -0.25, 0, -0.25, -0.5, -0.25, 0});
  expect_near(run_alibi(1, 1, 3, Alibi::offset(-2, kSlopes)).masked.data,  // p = -2
              {-1, -1.5, -2, -0.5, -0.75, -1});
}

TEST(ReferenceAlibi, ChangesTheWeights) {
  // Slope 1/2, p = 0: exponentials 1, e^(-1/2), e^-1.
  const double a = std::exp(-0.5), b = std::exp(-1.0), sum = 1 + a + b;
  const Result r = run_alibi(1, 1, 3, Alibi::top_left(kSlopes));
  expect_near({r.weights.data.begin(), r.weights.data.begin() + 3}, {1 / sum, a / sum, b / sum});
  EXPECT_NEAR(r.lse.data[0], std::log(sum), 1e-15);
}

TEST(ReferenceAlibi, AlignsToTheKeysOfARowsOwn) {
  // Two queries over lengths 3 and 2: p = (1, 2) and p = (0, 1). Only the first head is written out: slope 1/2.
  const std::vector<int64_t> lengths{3, 2};
  const Result r = run_alibi(2, 2, 3, {Lengths{lengths}, Alibi::bottom_right(kSlopes)});
  const auto head = [&](int64_t b) { return std::vector<double>(r.masked.view().at(b), r.masked.view().at(b) + 6); };
  expect_near(head(0), {-0.5, 0, -0.5, -1, -0.5, 0});
  expect_near(head(1), {0, -0.5, -kInfinity, -0.5, 0, -kInfinity});

  // Packed: the second sequence has query 1 and keys 1, 2. Top left, it is at its first key, which is key 1.
  const std::vector<int64_t> queries{0, 1, 2}, keys{0, 1, 3};
  const Result packed = run_alibi(1, 2, 3, {Packed{queries, keys}, Alibi::top_left(kSlopes)});
  expect_near({packed.masked.data.begin(), packed.masked.data.begin() + 6},
              {0, -kInfinity, -kInfinity, -kInfinity, 0, -0.5});
}

// ---- Bias ----------------------------------------------------------------------------------------------------------

TEST(ReferenceBias, OfEveryPair) {
  // Exponentials (1, 2) and (1, 4) times (6, 1) and (1, 1/2): (6, 2) and (1, 2).
  const Result r = run(with_bias(Array4({1, 1, 2, 2}, {std::log(6), 0, 0, -kLn2})));
  expect_near(r.weights.data, {3.0 / 4, 1.0 / 4, 1.0 / 3, 2.0 / 3});
  expect_near(r.out.data, {37.5, 50});
  expect_near(r.lse.data, {std::log(8), std::log(3)});
}

TEST(ReferenceBias, AnExtentOfOneServesAll) {
  expect_near(run(with_bias(Array4({1, 1, 1, 2}, {2 * kLn2, 0}))).weights.data,  // (4, 2) and (4, 4)
              {2.0 / 3, 1.0 / 3, 1.0 / 2, 1.0 / 2});
  // The same for all keys changes no weight, and adds itself to the log-sum-exp.
  const Result r = run(with_bias(Array4({1, 1, 2, 1}, {kLn2, kLn3})));
  expect_near(r.weights.data, {1.0 / 3, 2.0 / 3, 1.0 / 5, 4.0 / 5});
  expect_near(r.lse.data, {std::log(6), std::log(15)});

  // Of batches, and of heads: two of each, one query each. 6 times the first key: (6, 2).
  const Array4 q({2, 2, 1, 1}, 1), k({2, 1, 2, 1}, {0, kLn2, 0, kLn2}), v({2, 1, 2, 1}, {30, 60, 30, 60});
  const std::vector<double> bias{0, 0, std::log(6), 0};
  expect_near(run(Arrays{q, k, v, Array4({2, 1, 1, 2}, bias)}).out.data, {50, 50, 37.5, 37.5});
  expect_near(run(Arrays{q, k, v, Array4({1, 2, 1, 2}, bias)}).out.data, {50, 37.5, 50, 37.5});
}

TEST(ReferenceBias, MinusInfinityHidesAsAMaskDoes) {
  const Arrays a{kQ, Array4({1, 1, 2, 1}, {0, kNaN}), Array4({1, 1, 2, 1}, {30, kInfinity}),
                 Array4({1, 1, 2, 2}, {0, -kInfinity, -kInfinity, -kInfinity})};
  const Result r = run(a);
  expect_near(r.masked.data, {0, -kInfinity, -kInfinity, -kInfinity});
  expect_near(r.weights.data, {1, 0, 0, 0});
  expect_near(r.out.data, {30, 0});
  expect_near(r.lse.data, {0, -kInfinity});
  const Gradient g = run_backward(a, kOnes);
  expect_near(g.dv.data, {1, 0});
  for (const auto& d : {g.dq, g.dk}) expect_near(d.data, {0, 0});
  expect_near(g.d_bias.data, {0, 0, 0, 0});
}

TEST(ReferenceBias, InfinityAndNaNSpoilTheirRow) {
  for (const double poison : {kInfinity, kNaN}) {
    const Result r = run(with_bias(Array4({1, 1, 2, 2}, {0, 0, poison, 0})));
    expect_near(r.out.data, {50, kNaN});
    expect_near(r.weights.data, {1.0 / 3, 2.0 / 3, kNaN, kNaN});
  }
}

TEST(ReferenceBias, Backward) {
  // d_out = (1, 1): d_score is weight (v - out), (1/3 * -20, 2/3 * 10) and (1/5 * -24, 4/5 * 6).
  const auto d_bias = [](const Dims<4>& shape) { return run_backward(with_bias(Array4(shape)), kOnes).d_bias.data; };
  expect_near(d_bias({1, 1, 2, 2}), {-20.0 / 3, 20.0 / 3, -24.0 / 5, 24.0 / 5});
  expect_near(d_bias({1, 1, 1, 2}), {-172.0 / 15, 172.0 / 15});
  // What is the same for all keys of a row changes nothing: 0, to the rounding of numbers below 8.
  for (const double d : d_bias({1, 1, 2, 1})) EXPECT_NEAR(d, 0, 1e-14);
  for (const double d : d_bias({1, 1, 1, 1})) EXPECT_NEAR(d, 0, 1e-14);

  // Two batches of two heads, one query of 1 each; d_out = (1, 2, 3, 4) times (-20/3, 20/3).
  const Array4 q({2, 2, 1, 1}, 1), k({2, 1, 2, 1}, {0, kLn2, 0, kLn2}), v({2, 1, 2, 1}, {30, 60, 30, 60}),
      d_out({2, 2, 1, 1}, {1, 2, 3, 4});
  const auto broadcast_over = [&](const Dims<4>& shape) {
    return run_backward({q, k, v, Array4(shape)}, d_out).d_bias.data;
  };
  expect_near(broadcast_over({2, 1, 1, 2}), {-20, 20, -140.0 / 3, 140.0 / 3});  // 1 + 2, 3 + 4
  expect_near(broadcast_over({1, 2, 1, 2}), {-80.0 / 3, 80.0 / 3, -40, 40});    // 1 + 3, 2 + 4
  expect_near(broadcast_over({1, 1, 1, 2}), {-200.0 / 3, 200.0 / 3});           // 1 + 2 + 3 + 4
}

}  // namespace
}  // namespace heed::kernels::reference
