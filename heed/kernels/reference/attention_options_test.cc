// SPDX-License-Identifier: Apache-2.0
// Worked out by hand: softcap, head_gate, dropout and the additive score, and all options at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/kernels/reference/attention.h"
#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

using heed::testing::seeded;

const Array4 kOnes({1, 1, 2, 1}, 1);

// ---- Softcap -------------------------------------------------------------------------------------------------------

// tanh(x) = (e^2x - 1) / (e^2x + 1): tanh(ln 2) = 3/5, tanh(2 ln 2) = 15/17, tanh(ln 3 / 2) = 1/2.

TEST(ReferenceSoftcap, OfOne) {
  const Result r = run(kQ, kK, kV, {.softcap = 1});
  const double a = std::exp(3.0 / 5), b = std::exp(15.0 / 17);
  expect_near(r.raw.data, {0, kLn2, 0, 2 * kLn2});
  expect_near(r.capped.data, {0, 3.0 / 5, 0, 15.0 / 17});
  expect_near(r.masked.data, {0, 3.0 / 5, 0, 15.0 / 17});
  expect_near(r.weights.data, {1 / (1 + a), a / (1 + a), 1 / (1 + b), b / (1 + b)});
  expect_near(r.lse.data, {std::log(1 + a), std::log(1 + b)});
  expect_near(r.out.data, {(30 + 60 * a) / (1 + a), (30 + 60 * b) / (1 + b)});
}

TEST(ReferenceSoftcap, ComesAfterTheScale) {
  // Scale 1/2 makes the scores (0, ln 2 / 2) and (0, ln 2); a cap of 1/2 then divides by 1/2: 1/2 * (0, 3/5, 0, 15/17).
  const Result r = run(kQ, kK, kV, {.scale = 0.5f, .softcap = 0.5f});
  expect_near(r.raw.data, {0, kLn2 / 2, 0, kLn2});
  expect_near(r.capped.data, {0, 3.0 / 10, 0, 15.0 / 34});
}

TEST(ReferenceSoftcap, ComesBeforeTheBias) {
  // 3/5 + 5 and 15/17 + 5: a bias is not capped.
  const Result r = run(Arrays{kQ, kK, kV, Array4({1, 1, 1, 2}, {0, 5})}, {.softcap = 1});
  expect_near(r.capped.data, {0, 3.0 / 5, 0, 15.0 / 17});
  expect_near(r.masked.data, {0, 28.0 / 5, 0, 100.0 / 17});
}

TEST(ReferenceSoftcap, AnInfiniteScoreIsTheCap) {
  const Result r = run(Array4({1, 1, 1, 1}, {1}), Array4({1, 1, 3, 1}, {kInfinity, -kInfinity, 0}),
                       Array4({1, 1, 3, 1}, {1, 1, 1}), {.softcap = 2});
  expect_near(r.capped.data, {2, -2, 0});
  expect_near(r.lse.data, {std::log(std::exp(2.0) + std::exp(-2.0) + 1)});
}

TEST(ReferenceSoftcap, Backward) {
  // One query of 1: weights (1, a) / (1 + a) with a = e^(3/5), d_weight = v = (30, 60), so
  // d_score = (-m, m) with m = a / (1 + a)^2 * 30. The slope of the cap is 1 at 0 and 1 - 9/25 = 16/25 at ln 2.
  const double a = std::exp(3.0 / 5), m = 30 * a / ((1 + a) * (1 + a));
  const Gradient g = run_backward({Array4({1, 1, 1, 1}, {1}), kK, kV}, Array4({1, 1, 1, 1}, {1}), {.softcap = 1});
  EXPECT_NEAR(g.dk.data[0], -m, 1e-14 * m);
  EXPECT_NEAR(g.dk.data[1], 16.0 / 25 * m, 1e-14 * m);
  EXPECT_NEAR(g.dq.data[0], 16.0 / 25 * m * kLn2, 1e-14 * m);
}

// ---- Head gate -----------------------------------------------------------------------------------------------------

TEST(ReferenceHeadGate, MultipliesTheOutputAndNothingElse) {
  // Three heads of one query, 1 over kK and kV: 50, times 2, 0 and -1.
  const Arrays a{Array4({1, 3, 1, 1}, 1), kK, kV, {}, Array<1>({3}, {2, 0, -1})};
  const Result r = run(a);
  expect_near(r.out.data, {100, 0, -50});
  expect_near(r.lse.data, {kLn3, kLn3, kLn3});
  expect_near(r.weights.data, {1.0 / 3, 2.0 / 3, 1.0 / 3, 2.0 / 3, 1.0 / 3, 2.0 / 3});

  // d_out = (1, 1, 3): d_gate = 50 d_out, also for the head that is off. The rest is that of a head, (-20/3, 20/3) and
  // (1/3, 2/3), times gate d_out = (2, 0, -3), summed over the heads for k and v: times -1.
  const Gradient g = run_backward(a, Array4({1, 3, 1, 1}, {1, 1, 3}));
  expect_near(g.d_head_gate.data, {50, 50, 150});
  expect_near(g.dq.data, {40.0 / 3 * kLn2, 0, -20 * kLn2});
  expect_near(g.dk.data, {20.0 / 3, -20.0 / 3});
  expect_near(g.dv.data, {-1.0 / 3, -2.0 / 3});
}

TEST(ReferenceHeadGate, SumsOverBatchesAndQueries) {
  const Arrays a{Array4({2, 1, 2, 1}, {1, 2, 1, 2}),
                 Array4({2, 1, 2, 1}, {0, kLn2, 0, kLn2}),
                 Array4({2, 1, 2, 1}, {30, 60, 30, 60}),
                 {},
                 Array<1>({1}, {7})};
  const Gradient g = run_backward(a, Array4({2, 1, 2, 1}, {1, 10, 100, 1000}));
  expect_near(g.d_head_gate.data, {50 + 540 + 5000 + 54000});
}

TEST(ReferenceHeadGate, ARowThatSeesNothingIsZeroWhateverItIs) {
  const std::vector<int64_t> none{0};
  for (const double gate : {-1.0, kInfinity, kNaN}) {
    const Arrays a{kQ, kK, kV, {}, Array<1>({1}, {gate})};
    const Result r = run(a, masked(Lengths{none}));
    expect_near(r.out.data, {0, 0});
    const Gradient g = run_backward(a, kOnes, masked(Lengths{none}));
    expect_near(g.d_head_gate.data, {0});
    for (const auto& d : {g.dq, g.dk, g.dv}) expect_near(d.data, {0, 0});
  }
}

// ---- Dropout -------------------------------------------------------------------------------------------------------

// What is drawn fairly misses this once in 1.7 million times.
constexpr double kSigmas = 5;

// With the identity as v, out is the weights themselves, dropped. All heads share one of keys.
Arrays identity_values(const Dims<4>& q, int64_t S) {
  Rng rng(seeded(1));
  Arrays a{Array4(q), Array4({q[0], 1, S, q[3]}), Array4({q[0], 1, S, S})};
  for (double& x : a.q.data) x = double{rng.normal()};
  for (double& x : a.k.data) x = double{rng.normal()};
  for (size_t i = 0; i < a.v.data.size(); ++i) a.v.data[i] = i / S % S == i % S;
  return a;
}

TEST(ReferenceDropout, MultipliesTheWeightsByZeroOrTheInverseOfTheRest) {
  const int64_t T = 5, S = 19;
  const Arrays a = identity_values({2, 3, T, 2}, S);
  for (const auto& [rate, keep] : {std::pair{0.5f, 2.0}, {0.25f, 4.0 / 3}, {0.0f, 1.0}}) {
    const Dropout dropout{rate, seeded(42)};
    const Result plain = run(a), r = run(a, {.dropout = dropout});
    EXPECT_EQ(r.weights.data, plain.weights.data);
    EXPECT_EQ(r.lse.data, plain.lse.data);
    std::vector<double> expected;
    for (const double weight : plain.weights.data) {
      const int64_t i = std::ssize(expected);  // ((b Hq + h) T + t) S + s
      expected.push_back(dropout.keeps(i / (T * S), i / S % T, i % S) ? keep * weight : 0);
    }
    expect_near(r.out.data, expected);
  }
}

TEST(ReferenceDropout, DropsAtItsRate) {
  const int64_t T = 64, S = 128, pairs = 4 * T * S;
  const Arrays a = identity_values({2, 2, T, 1}, S);
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    const Result r = run(a, {.dropout = {rate, seeded(7)}});
    const auto dropped = std::count(r.out.data.begin(), r.out.data.end(), 0.0);
    // The rate's own rounding, at most 2^-17, moves this by less than one pair; a binomial count has this deviation.
    const double deviation = std::sqrt(static_cast<double>(pairs) * rate * (1 - rate));
    EXPECT_NEAR(static_cast<double>(dropped), static_cast<double>(pairs) * double{rate}, kSigmas * deviation) << rate;
  }
}

TEST(ReferenceDropout, KeepsTheExpectation) {
  // Over seeds, the mean of sum_s keep_s weight_s is 1; a term has the variance weight_s^2 rate / (1 - rate).
  const int64_t S = 9, seeds = 4000;
  const Arrays a = identity_values({1, 1, 3, 2}, S);
  const double rate = 0.25;
  const Result plain = run(a);
  std::vector<double> mean(a.q.data.size() / 2);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Result r = run(a, {.dropout = {static_cast<float>(rate), seeded(seed)}});
    for (size_t i = 0; i < r.out.data.size(); ++i) mean[i / S] += r.out.data[i] / seeds;
  }
  for (size_t t = 0; t < mean.size(); ++t) {
    double variance = 0;
    for (size_t s = 0; s < S; ++s) variance += std::pow(plain.weights.data[t * S + s], 2) * rate / (1 - rate);
    EXPECT_NEAR(mean[t], 1, kSigmas * std::sqrt(variance / seeds));
  }
}

TEST(ReferenceDropout, Backward) {
  // A seed that drops the first of two keys and keeps the second, at rate 1/2: out = 2 * 2/3 * 60 = 80.
  // d_weight = (0, 2 * 60), their mean 2/3 * 120 = 80, d_score = (1/3 * -80, 2/3 * 40) = (-80/3, 80/3).
  Dropout dropout{0.5f, 0};
  while (dropout.keeps(0, 0, 0) || !dropout.keeps(0, 0, 1)) ++dropout.seed;
  const Arrays a{Array4({1, 1, 1, 1}, {1}), kK, kV};
  expect_near(run(a, {.dropout = dropout}).out.data, {80});
  const Gradient g = run_backward(a, Array4({1, 1, 1, 1}, {1}), {.dropout = dropout});
  expect_near(g.dq.data, {80.0 / 3 * kLn2});
  expect_near(g.dk.data, {-80.0 / 3, 80.0 / 3});
  expect_near(g.dv.data, {0, 4.0 / 3});
}

// ---- The additive score --------------------------------------------------------------------------------------------

TEST(ReferenceAdditive, OneWide) {
  // q = 0 and k = (0, ln 2): tanh gives (0, 3/5), and w = 5/3 ln 2 makes scores (0, ln 2), so weights (1/3, 2/3).
  const Arrays a{Array4({1, 1, 1, 1}, {0}), kK, kV, {}, {}, Array<2>({1, 1}, {5.0 / 3 * kLn2})};
  const Result r = run(a);
  expect_near(r.raw.data, {0, kLn2});
  expect_near(r.weights.data, {1.0 / 3, 2.0 / 3});
  expect_near(r.out.data, {50});

  // d_score = (-20/3, 20/3). dw = 20/3 * 3/5 = 4. The slope of tanh is 1 at 0 and 1 - 9/25 = 16/25 at ln 2, times w:
  // dk = (-20/3 * 5/3, 20/3 * 5/3 * 16/25) ln 2 = (-100/9, 64/9) ln 2, and dq is their sum, -4 ln 2.
  const Gradient g = run_backward(a, Array4({1, 1, 1, 1}, {1}));
  expect_near(g.dw.data, {4});
  expect_near(g.dk.data, {-100.0 / 9 * kLn2, 64.0 / 9 * kLn2});
  expect_near(g.dq.data, {-4 * kLn2});
}

TEST(ReferenceAdditive, SumsOverItsWidthWithTheScaleOne) {
  // q + k is (ln 2, ln 3 / 2) for the second key: tanh gives (3/5, 1/2), so 5/3 ln 2 * 3/5 + 2 ln 2 * 1/2 = 2 ln 2.
  // For the first key both are 0. The second head has half that w: ln 2. No division by sqrt(D).
  const Arrays a{Array4({1, 2, 1, 2}, {1, 2, 1, 2}),
                 Array4({1, 1, 2, 2}, {-1, -2, kLn2 - 1, kLn3 / 2 - 2}),
                 kV,
                 {},
                 {},
                 Array<2>({2, 2}, {5.0 / 3 * kLn2, 2 * kLn2, 5.0 / 6 * kLn2, kLn2})};
  const Result r = run(a);
  expect_near(r.weights.data, {1.0 / 5, 4.0 / 5, 1.0 / 3, 2.0 / 3});
  expect_near(run(a, {.scale = 0.5f}).weights.data,  // scores ln 2 and ln 2 / 2
              {1.0 / 3, 2.0 / 3, 1 / (1 + std::sqrt(2.0)), std::sqrt(2.0) / (1 + std::sqrt(2.0))});
}

// ---- All of them ---------------------------------------------------------------------------------------------------

TEST(ReferenceOptions, Compose) {
  // The second key: tanh(ln 2) = 3/5 is the score of w = 1. A cap of 3/5 * 2 / ln 3 would make its argument ln 3 / 2;
  // with a cap of 1 it becomes c = tanh(3/5), less slope 1/2 at distance 1, plus a bias that makes it ln 2.
  // The third key is hidden by Dense, the fourth by the bias, the fifth by the length. Weights 1/3, 2/3, out 50,
  // gate 2.
  const double c = std::tanh(3.0 / 5);
  const std::array<bool, 5> visible{true, true, false, true, true};
  const std::array<float, 1> slope{0.5f};
  const std::vector<int64_t> lengths{4};
  const Arrays a{Array4({1, 1, 1, 1}, {0}),
                 Array4({1, 1, 5, 1}, {0, kLn2, kNaN, kNaN, kNaN}),
                 Array4({1, 1, 5, 1}, {30, 60, kNaN, kNaN, kNaN}),
                 Array4({1, 1, 1, 5}, {0, kLn2 - c + 0.5, kNaN, -kInfinity, kNaN}),
                 Array<1>({1}, {2}),
                 Array<2>({1, 1}, {1})};
  AttentionOptions options{.mask = {Lengths{lengths}, Dense{{visible.data(), {1, 1, 1, 5}}}, Alibi::top_left(slope)},
                           .softcap = 1};
  const Result r = run(a, options);
  expect_near(r.raw.data, {0, 3.0 / 5, kNaN, kNaN, kNaN});
  expect_near(r.capped.data, {0, c, kNaN, kNaN, kNaN});
  expect_near(r.masked.data, {0, kLn2, -kInfinity, -kInfinity, -kInfinity});
  expect_near(r.weights.data, {1.0 / 3, 2.0 / 3, 0, 0, 0});
  expect_near(r.out.data, {100});

  // With dropout at 1/2 that drops the first and keeps the second: twice 2 * 2/3 * 60.
  options.dropout.rate = 0.5f;
  while (options.dropout.keeps(0, 0, 0) || !options.dropout.keeps(0, 0, 1)) ++options.dropout.seed;
  expect_near(run(a, options).out.data, {160});

  // d_score = (-80/3, 80/3) as above, times the gate: 160/3. Through the cap 1 - c^2, through tanh 16/25 (1 at 0).
  const Gradient g = run_backward(a, Array4({1, 1, 1, 1}, {1}), options);
  const double d = 160.0 / 3, slope_of_cap = 1 - c * c;
  expect_near(g.d_bias.data, {-d, d, 0, 0, 0});
  expect_near(g.d_head_gate.data, {80});
  expect_near(g.dw.data, {d * slope_of_cap * 3 / 5});
  expect_near(g.dk.data, {-d, d * slope_of_cap * 16 / 25, 0, 0, 0});
  expect_near(g.dv.data, {0, 8.0 / 3, 0, 0, 0});
  EXPECT_NEAR(g.dq.data[0], d * (slope_of_cap * 16 / 25 - 1), 1e-13);
}

// ---- Errors --------------------------------------------------------------------------------------------------------

std::string input_error(Inputs in, const AttentionOptions& options = {}) {
  Array4 out({1, 1, 2, 1});
  in.q = kQ.view(), in.k = kK.view(), in.v = kV.view();
  return error_of([&] { attention_forward(in, {.out = out.view()}, options); });
}

TEST(ReferenceErrors, OptionalInputs) {
  const Array4 bias({1, 2, 1, 2});
  const Array<1> gate({2});
  const Array<2> w({1, 2});
  EXPECT_EQ(input_error({}), "no error");
  EXPECT_EQ(input_error({.bias = bias.view()}),
            "attention: bias has shape [1, 2, 1, 2], expected [1, 1, 2, 2], or 1 in place of any of these");
  EXPECT_EQ(input_error({.head_gate = gate.view()}), "attention: head_gate has shape [2], expected [1]");
  EXPECT_EQ(input_error({.w = w.view()}), "attention: w has shape [1, 2], expected [1, 1]");
}

TEST(ReferenceErrors, Options) {
  const std::array<bool, 3> visible{};
  const std::array<float, 2> slopes{};
  EXPECT_EQ(input_error({}, masked(Dense{{visible.data(), {1, 1, 1, 3}}})),
            "attention: dense.visible has shape [1, 1, 1, 3], expected [1, 1, 2, 2], or 1 in place of any of these");
  EXPECT_EQ(input_error({}, masked(Dense{{nullptr, {1, 1, 1, 2}}})), "attention: dense.visible has no data");
  EXPECT_EQ(input_error({}, masked(Alibi::top_left(slopes))), "attention: alibi.slopes has 2 entries, expected 1 (Hq)");
  EXPECT_EQ(input_error({}, {.softcap = -1}), "attention: softcap is -1.000000, expected a finite number, 0 or more");
  EXPECT_EQ(input_error({}, {.softcap = std::numeric_limits<float>::infinity()}),
            "attention: softcap is inf, expected a finite number, 0 or more");
  for (const float rate : {-0.5f, 1.0f}) {
    EXPECT_EQ(input_error({}, {.dropout = {.rate = rate}}),
              "attention: dropout.rate is " + std::to_string(rate) + ", expected at least 0 and below 1");
  }
}

TEST(ReferenceErrors, GradientsOfOptionalInputs) {
  const Arrays plain{kQ, kK, kV}, all{kQ, kK, kV, Array4({1, 1, 1, 2}), Array<1>({1}), Array<2>({1, 1})};
  Array4 bad_bias({1, 1, 2, 2});
  Array<1> bad_gate({2});
  Array<2> bad_w({2, 1});
  const auto error = [](const Arrays& a, Gradients gradients) {
    gradients.d_out = kOnes.view();
    return error_of([&] { attention_backward(a.inputs(), gradients); });
  };
  EXPECT_EQ(error(plain, {.d_bias = bad_bias.view()}), "attention: d_bias is wanted, but there is no bias");
  EXPECT_EQ(error(plain, {.d_head_gate = bad_gate.view()}),
            "attention: d_head_gate is wanted, but there is no head_gate");
  EXPECT_EQ(error(plain, {.dw = bad_w.view()}), "attention: dw is wanted, but there is no w");
  EXPECT_EQ(error(all, {.d_bias = bad_bias.view()}), "attention: d_bias has shape [1, 1, 2, 2], expected [1, 1, 1, 2]");
  EXPECT_EQ(error(all, {.d_head_gate = bad_gate.view()}), "attention: d_head_gate has shape [2], expected [1]");
  EXPECT_EQ(error(all, {.dw = bad_w.view()}), "attention: dw has shape [2, 1], expected [1, 1]");
}

}  // namespace
}  // namespace heed::kernels::reference
