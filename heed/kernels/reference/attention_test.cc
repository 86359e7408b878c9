// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heed/kernels/reference/testing.h"

// The specification has nothing to be compared with but paper (here, and attention_options_test.cc) and central
// differences (attention_gradient_test.cc).
namespace heed::kernels::reference {
namespace {

AttentionOptions scaled(float scale) { return {.scale = scale}; }

TEST(ReferenceForward, TwoByTwo) {
  const Result r = run(kQ, kK, kV);
  expect_near(r.weights.data, {1.0 / 3, 2.0 / 3, 1.0 / 5, 4.0 / 5});
  expect_near(r.out.data, {50, 54});
  expect_near(r.lse.data, {std::log(3), std::log(5)});
}

TEST(ReferenceForward, Causal) {
  const Result r = run(kQ, kK, kV, masked(Causal::top_left()));
  expect_near(r.weights.data, {1, 0, 1.0 / 5, 4.0 / 5});
  expect_near(r.out.data, {30, 54});
  expect_near(r.lse.data, {0, std::log(5)});
}

TEST(ReferenceForward, Window) {
  // Each query sees its own key only, so its log-sum-exp is that one score: 0 and 2 ln 2.
  const Result r = run(kQ, kK, kV, masked(Window::top_left(0, 0)));
  expect_near(r.weights.data, {1, 0, 0, 1});
  expect_near(r.out.data, {30, 60});
  expect_near(r.lse.data, {0, 2 * kLn2});
}

TEST(ReferenceForward, Packed) {
  const std::vector<int64_t> queries{0, 1, 2}, keys{0, 0, 2};  // the first query's sequence has no keys
  const Result r = run(kQ, kK, kV, masked(Packed{queries, keys}));
  expect_near(r.weights.data, {0, 0, 1.0 / 5, 4.0 / 5});
  expect_near(r.out.data, {0, 54});
  expect_near(r.lse.data, {-kInfinity, std::log(5)});
}

TEST(ReferenceForward, LengthsOfEachBatch) {
  // One query of 1 over keys (0, ln 2), in three batches that see 2, 1 and 0 of them.
  const Array4 q({3, 1, 1, 1}, {1, 1, 1}), k({3, 1, 2, 1}, {0, kLn2, 0, kLn2, 0, kLn2}),
      v({3, 1, 2, 1}, {30, 60, 30, 60, 30, 60});
  const std::vector<int64_t> lengths{2, 1, 0};
  const Result r = run(q, k, v, masked(Lengths{lengths}));
  expect_near(r.weights.data, {1.0 / 3, 2.0 / 3, 1, 0, 0, 0});
  expect_near(r.out.data, {50, 30, 0});
  expect_near(r.lse.data, {kLn3, 0, -kInfinity});
}

TEST(ReferenceForward, ScaleIsOneOverTheRootOfTheWidthUnlessGiven) {
  // D = 4: q.k = 2 ln 2 for the second key, halved by the default scale, so weights 1/3, 2/3; at scale 1, 1/5, 4/5.
  const Array4 q({1, 1, 1, 4}, {1, 0, 1, 0}), k({1, 1, 2, 4}, {0, 7, 0, 7, kLn2, 7, kLn2, 7});
  expect_near(run(q, k, kV).weights.data, {1.0 / 3, 2.0 / 3});
  expect_near(run(q, k, kV, scaled(1.0f)).weights.data, {1.0 / 5, 4.0 / 5});
  expect_near(run(q, k, kV, scaled(0.0f)).weights.data, {1.0 / 2, 1.0 / 2});
  expect_near(run(q, k, kV, scaled(-0.5f)).weights.data, {2.0 / 3, 1.0 / 3});
}

TEST(ReferenceForward, NeighbouringQueryHeadsShareAKeyHead) {
  // Four query heads over two key heads: 0 and 1 read the first, 2 and 3 the second.
  const Array4 q({1, 4, 1, 1}, {1, 2, 1, 2}), k({1, 2, 2, 1}, {0, kLn2, kLn3, 0}), v({1, 2, 2, 1}, {30, 60, 20, 40});
  const Result r = run(q, k, v);
  expect_near(r.weights.data, {1.0 / 3, 2.0 / 3, 1.0 / 5, 4.0 / 5, 3.0 / 4, 1.0 / 4, 9.0 / 10, 1.0 / 10});
  expect_near(r.out.data, {50, 54, 25, 22});
}

TEST(ReferenceForward, ValuesOfAnotherWidth) {
  const Array4 v({1, 1, 2, 3}, {3, 6, 9, 30, 60, 90});  // 1/3 + 2/3 and 1/5 + 4/5 of these rows
  expect_near(run(kQ, kK, v).out.data, {21, 42, 63, 24.6, 49.2, 73.8});
}

TEST(ReferenceForward, LargeScoresKeepTheirDifferences) {
  // Scores 1000 ln 2 and 999 ln 2 overflow no exp: weights 2/3 and 1/3, to the rounding of the scores themselves.
  const Array4 q({1, 1, 1, 1}, {1}), k({1, 1, 2, 1}, {1000 * kLn2, 999 * kLn2});
  const Result r = run(q, k, kV);
  EXPECT_NEAR(r.weights.data[0], 2.0 / 3, 1e-13);
  EXPECT_NEAR(r.lse.data[0], 999 * kLn2 + kLn3, 1e-12);
}

TEST(ReferenceForward, NoQueriesOrNoKeys) {
  EXPECT_EQ(run(Array4({1, 1, 0, 1}), kK, kV).out.data.size(), 0u);
  const Result r = run(kQ, Array4({1, 1, 0, 1}), Array4({1, 1, 0, 3}));
  expect_near(r.out.data, {0, 0, 0, 0, 0, 0});
  expect_near(r.lse.data, {-kInfinity, -kInfinity});
}

TEST(ReferenceForward, InfiniteAndNaNScores) {
  const Array4 q({1, 1, 1, 1}, {1}), v({1, 1, 3, 1}, {30, 60, 90});
  const auto with_scores = [&](const std::vector<double>& scores) { return run(q, Array4({1, 1, 3, 1}, scores), v); };

  Result r = with_scores({0, -kInfinity, kLn2});  // weight 0 for -inf
  expect_near(r.weights.data, {1.0 / 3, 0, 2.0 / 3});
  expect_near(r.out.data, {70});
  expect_near(r.lse.data, {kLn3});

  r = with_scores({-kInfinity, -kInfinity, -kInfinity});  // as if it saw nothing
  expect_near(r.weights.data, {0, 0, 0});
  expect_near(r.out.data, {0});
  expect_near(r.lse.data, {-kInfinity});

  for (const auto& scores : std::vector<std::vector<double>>{{0, kInfinity, 0},
                                                             {-kInfinity, kInfinity, -kInfinity},
                                                             {kInfinity, kInfinity, kInfinity},
                                                             {kNaN, 0, 0},
                                                             {0, 0, kNaN},
                                                             {kNaN, kNaN, kNaN},
                                                             {-kInfinity, kNaN, -kInfinity}}) {
    r = with_scores(scores);
    expect_near(r.weights.data, {kNaN, kNaN, kNaN});
    expect_near(r.out.data, {kNaN});
    expect_near(r.lse.data, {kNaN});
  }
}

TEST(ReferenceForward, OnlyTheRowsThatSeeItAreTouchedByNaN) {
  for (const double poison : {kNaN, kInfinity, -kInfinity}) {
    const Array4 k({1, 1, 2, 1}, {0, poison}), v({1, 1, 2, 1}, {30, poison});
    const AttentionOptions causal = masked(Causal::top_left());
    EXPECT_EQ(run(kQ, kK, v, causal).out.data[0], 30);
    EXPECT_FALSE(std::isfinite(run(kQ, kK, v, causal).out.data[1]));
    EXPECT_EQ(run(kQ, k, kV, causal).out.data[0], 30);
    EXPECT_EQ(run(kQ, k, v, causal).weights.data[1], 0);
  }
}

TEST(ReferenceForward, StridedViews) {
  // The same numbers in [B,T,H,D] order: query heads (1, 2) and (2, 1), both over kK and kV.
  const Array4 q({1, 2, 2, 1}, {1, 2, 2, 1});  // t0: 1, 2; t1: 2, 1
  Array4 out({1, 2, 2, 1});
  attention_forward({q.view().transposed(1, 2), kK.view(), kV.view()}, {.out = out.view().transposed(1, 2)});
  expect_near(out.data, {50, 54, 54, 50});
}

TEST(ReferenceBackward, TwoByTwo) {
  // d_out = (1, 0) leaves the first query: weights (1/3, 2/3), d_weight = v = (30, 60), mean 50,
  // d_score = (1/3 * -20, 2/3 * 10) = (-20/3, 20/3); dq = 20/3 ln 2, dk = d_score * q = (-20/3, 20/3).
  const Gradient g = run_backward({kQ, kK, kV}, Array4({1, 1, 2, 1}, {1, 0}));
  expect_near(g.dq.data, {20.0 / 3 * kLn2, 0});
  expect_near(g.dk.data, {-20.0 / 3, 20.0 / 3});
  expect_near(g.dv.data, {1.0 / 3, 2.0 / 3});
}

TEST(ReferenceBackward, MaskedPlacesGiveAndGetNothing) {
  const Array4 k({1, 1, 2, 1}, {0, kNaN}), v({1, 1, 2, 1}, {30, kInfinity});
  const std::vector<int64_t> one{1}, none{0};
  Gradient g = run_backward({kQ, k, v}, Array4({1, 1, 2, 1}, {2, 3}), masked(Lengths{one}));
  expect_near(g.dq.data, {0, 0});  // one visible key: its weight is 1 whatever its score
  expect_near(g.dk.data, {0, 0});
  expect_near(g.dv.data, {5, 0});
  g = run_backward({kQ, k, v}, Array4({1, 1, 2, 1}, {2, 3}), masked(Lengths{none}));
  for (const auto& d : {g.dq, g.dk, g.dv}) expect_near(d.data, {0, 0});
}

TEST(ReferenceBackward, ARowOfMinusInfinitySeesNothing) {
  const Array4 k({1, 1, 2, 1}, {-kInfinity, -kInfinity});
  const Gradient g = run_backward({kQ, k, kV}, Array4({1, 1, 2, 1}, {2, 3}));
  for (const auto& d : {g.dq, g.dk, g.dv}) expect_near(d.data, {0, 0});
}

TEST(ReferenceBackward, AddsToWhatIsThere) {
  Array4 dq({1, 1, 2, 1}, {100, 200}), dk({1, 1, 2, 1}, {300, 400}), dv({1, 1, 2, 1}, {500, 600});
  const Array4 d_out({1, 1, 2, 1}, {1, 0});
  attention_backward({kQ.view(), kK.view(), kV.view()}, {d_out.view(), dq.view(), dk.view(), dv.view()});
  expect_near(dq.data, {100 + 20.0 / 3 * kLn2, 200});
  expect_near(dk.data, {300 - 20.0 / 3, 400 + 20.0 / 3});
  expect_near(dv.data, {500 + 1.0 / 3, 600 + 2.0 / 3});
}

// ---- Errors --------------------------------------------------------------------------------------------------------

std::string forward_error(const Dims<4>& q, const Dims<4>& k, const Dims<4>& v, const Dims<4>& out) {
  const Arrays arrays{Array4(q), Array4(k), Array4(v)};
  Array4 out_array(out);
  return error_of([&] { attention_forward(arrays.inputs(), {.out = out_array.view()}); });
}

TEST(ReferenceErrors, Shapes) {
  const Dims<4> q{2, 8, 5, 64}, k{2, 8, 16, 64}, v{2, 8, 16, 3}, out{2, 8, 5, 3};
  EXPECT_EQ(forward_error(q, k, v, out), "no error");
  EXPECT_EQ(forward_error(q, {2, 8, 16, 32}, v, out), "attention: k has shape [2, 8, 16, 32], expected [2, 8, S, 64]");
  EXPECT_EQ(forward_error(q, k, {2, 8, 15, 3}, out), "attention: v has shape [2, 8, 15, 3], expected [2, 8, 16, Dv]");
  EXPECT_EQ(forward_error(q, k, v, {2, 8, 5, 64}), "attention: out has shape [2, 8, 5, 64], expected [2, 8, 5, 3]");
  EXPECT_EQ(forward_error(q, {2, 3, 16, 64}, {2, 3, 16, 3}, out),
            "attention: q has 8 heads, expected a multiple of 3 (the heads of k)");
  EXPECT_EQ(forward_error(q, {2, 0, 16, 64}, {2, 0, 16, 3}, out), "attention: k has 0 heads, expected 1 or more");
  EXPECT_EQ(forward_error({2, 8, 5, 0}, {2, 8, 16, 0}, v, out),
            "attention: q has shape [2, 8, 5, 0], expected D of 1 or more");
}

TEST(ReferenceErrors, OptionalViewsAndMissingOnes) {
  const Inputs in{kQ.view(), kK.view(), kV.view()};
  Array4 good({1, 1, 2, 1}), bad({1, 1, 3, 1});
  Array<3> lse({1, 1, 3});
  EXPECT_EQ(error_of([&] { attention_forward(in, {.out = good.view(), .lse = lse.view()}); }),
            "attention: lse has shape [1, 1, 3], expected [1, 1, 2]");
  EXPECT_EQ(error_of([&] { attention_forward(in, {.out = good.view(), .weights = bad.view()}); }),
            "attention: weights has shape [1, 1, 3, 1], expected [1, 1, 2, 2]");
  EXPECT_EQ(error_of([&] { attention_forward(in, {.out = {nullptr, {1, 1, 2, 1}}}); }), "attention: out has no data");
  EXPECT_EQ(error_of([&] { attention_backward(in, {.d_out = bad.view()}); }),
            "attention: d_out has shape [1, 1, 3, 1], expected [1, 1, 2, 1]");
  EXPECT_EQ(error_of([&] { attention_backward(in, {.d_out = good.view(), .dk = bad.view()}); }),
            "attention: dk has shape [1, 1, 3, 1], expected [1, 1, 2, 1]");
  EXPECT_EQ(error_of([&] { attention_forward(in, {.out = good.view()}, masked(Window::top_left(-1, 0))); }),
            "attention: window.left is -1, expected 0 or more");
}

}  // namespace
}  // namespace heed::kernels::reference
