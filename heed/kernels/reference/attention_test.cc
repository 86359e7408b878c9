#include "heed/kernels/reference/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/base/error.h"
#include "heed/base/rng.h"

// The specification has nothing to be compared with but paper (first part) and central differences (second part).
namespace heed::kernels::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kLn2 = std::log(2.0), kLn3 = std::log(3.0);

// An array that owns its numbers.
template <size_t Rank>
struct Array {
  Dims<Rank> shape;
  std::vector<double> data;

  explicit Array(const Dims<Rank>& dims, double value = 0) : shape(dims), data(element_count(dims), value) {}
  Array(const Dims<Rank>& dims, std::vector<double> values) : shape(dims), data(std::move(values)) {
    EXPECT_EQ(std::ssize(data), element_count(dims));
  }
  View<double, Rank> view() { return {data.data(), shape}; }
  View<const double, Rank> view() const { return {data.data(), shape}; }
};
using Array4 = Array<4>;

struct Result {
  Array4 out;
  Array<3> lse;
  Array4 weights;
};

// Outputs start as NaN: whatever is not written shows.
Result run(const Array4& q, const Array4& k, const Array4& v, const AttentionOptions& options = {}) {
  const int64_t B = q.shape[0], H = q.shape[1], T = q.shape[2], S = k.shape[2], Dv = v.shape[3];
  Result result{Array4({B, H, T, Dv}, kNaN), Array<3>({B, H, T}, kNaN), Array4({B, H, T, S}, kNaN)};
  attention_forward({q.view(), k.view(), v.view()}, {result.out.view(), result.lse.view(), result.weights.view()},
                    options);
  return result;
}

AttentionOptions masked(const Mask& mask) { return {{}, mask}; }
AttentionOptions scaled(float scale) { return {scale, {}}; }

struct Gradient {
  Array4 dq, dk, dv;
};

Gradient run_backward(const Array4& q, const Array4& k, const Array4& v, const Array4& d_out,
                      const AttentionOptions& options = {}) {
  Gradient g{Array4(q.shape), Array4(k.shape), Array4(v.shape)};
  attention_backward({q.view(), k.view(), v.view()}, {d_out.view(), g.dq.view(), g.dk.view(), g.dv.view()}, options);
  return g;
}

// Equal to a few roundings; infinities exactly, NaN wherever NaN is expected and nowhere else.
void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE("element " + std::to_string(i));
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << actual[i];
    } else if (std::isinf(expected[i]) || expected[i] == 0) {
      EXPECT_EQ(actual[i], expected[i]);
    } else {
      EXPECT_NEAR(actual[i], expected[i], 8 * std::numeric_limits<double>::epsilon() * std::abs(expected[i]));
    }
  }
}

// ---- By hand -------------------------------------------------------------------------------------------------------

// q = (1, 2), k = (0, ln 2), so the scores are (0, ln 2) and (0, ln 4), their exponentials (1, 2) and (1, 4), the
// weights (1/3, 2/3) and (1/5, 4/5). With v = (30, 60): 10 + 40 = 50 and 6 + 48 = 54.
const Array4 kQ({1, 1, 2, 1}, {1, 2}), kK({1, 1, 2, 1}, {0, kLn2}), kV({1, 1, 2, 1}, {30, 60});

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
  const auto with_scores = [&](std::vector<double> scores) { return run(q, Array4({1, 1, 3, 1}, scores), v); };

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
  const Gradient g = run_backward(kQ, kK, kV, Array4({1, 1, 2, 1}, {1, 0}));
  expect_near(g.dq.data, {20.0 / 3 * kLn2, 0});
  expect_near(g.dk.data, {-20.0 / 3, 20.0 / 3});
  expect_near(g.dv.data, {1.0 / 3, 2.0 / 3});
}

TEST(ReferenceBackward, MaskedPlacesGiveAndGetNothing) {
  const Array4 k({1, 1, 2, 1}, {0, kNaN}), v({1, 1, 2, 1}, {30, kInfinity});
  const std::vector<int64_t> one{1}, none{0};
  Gradient g = run_backward(kQ, k, v, Array4({1, 1, 2, 1}, {2, 3}), masked(Lengths{one}));
  expect_near(g.dq.data, {0, 0});  // one visible key: its weight is 1 whatever its score
  expect_near(g.dk.data, {0, 0});
  expect_near(g.dv.data, {5, 0});
  g = run_backward(kQ, k, v, Array4({1, 1, 2, 1}, {2, 3}), masked(Lengths{none}));
  for (const auto& d : {g.dq, g.dk, g.dv}) expect_near(d.data, {0, 0});
}

TEST(ReferenceBackward, ARowOfMinusInfinitySeesNothing) {
  const Array4 k({1, 1, 2, 1}, {-kInfinity, -kInfinity});
  const Gradient g = run_backward(kQ, k, kV, Array4({1, 1, 2, 1}, {2, 3}));
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
  Array4 q_array(q), k_array(k), v_array(v), out_array(out);
  try {
    attention_forward({q_array.view(), k_array.view(), v_array.view()}, {.out = out_array.view()});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
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
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const Inputs in{kQ.view(), kK.view(), kV.view()};
  Array4 good({1, 1, 2, 1}), bad({1, 1, 3, 1});
  Array<3> lse({1, 1, 3});
  EXPECT_EQ(message([&] { attention_forward(in, {.out = good.view(), .lse = lse.view()}); }),
            "attention: lse has shape [1, 1, 3], expected [1, 1, 2]");
  EXPECT_EQ(message([&] { attention_forward(in, {.out = good.view(), .weights = bad.view()}); }),
            "attention: weights has shape [1, 1, 3, 1], expected [1, 1, 2, 2]");
  EXPECT_EQ(message([&] { attention_forward(in, {.out = {nullptr, {1, 1, 2, 1}}}); }), "attention: out has no data");
  EXPECT_EQ(message([&] { attention_backward(in, {.d_out = bad.view()}); }),
            "attention: d_out has shape [1, 1, 3, 1], expected [1, 1, 2, 1]");
  EXPECT_EQ(message([&] { attention_backward(in, {.d_out = good.view(), .dk = bad.view()}); }),
            "attention: dk has shape [1, 1, 3, 1], expected [1, 1, 2, 1]");
  EXPECT_EQ(message([&] { attention_forward(in, {.out = good.view()}, masked(Window::top_left(-1, 0))); }),
            "attention: window.left is -1, expected 0 or more");
}

// ---- Central differences -------------------------------------------------------------------------------------------

Array4 random_array(const Dims<4>& shape, Rng& rng) {
  Array4 array(shape);
  for (double& x : array.data) x = double{rng.normal()};
  return array;
}

// A shape, a mask and numbers, from a seed. It owns the lists that the mask borrows.
struct Draw {
  Rng rng;
  AttentionShape n;
  std::vector<int64_t> lengths, queries, keys;
  AttentionOptions options;
  Array4 q, k, v, d_out;

  explicit Draw(uint64_t seed)
      : rng(seed),
        n(draw_shape(seed)),
        q(random_array({n.B, n.Hq, n.T, n.D}, rng)),
        k(random_array({n.B, n.Hk, n.S, n.D}, rng)),
        v(random_array({n.B, n.Hk, n.S, n.Dv}, rng)),
        d_out(random_array({n.B, n.Hq, n.T, n.Dv}, rng)) {
    draw_mask(seed);
    if (rng.below(2)) options.scale = rng.uniform(-1, 1);
  }
  Draw(const Draw&) = delete;

  int64_t between(int64_t low, int64_t high) { return low + static_cast<int64_t>(rng.below(high - low + 1)); }

  // Seeds go through the eight sets of {causal, window, lengths}, with packed sequences in every other eight.
  bool packed(uint64_t seed) const { return seed / 8 % 2; }

  AttentionShape draw_shape(uint64_t seed) {
    const int64_t Hk = between(1, 2);
    return {.B = packed(seed) ? 1 : between(1, 2),
            .Hq = Hk * between(1, 2),
            .Hk = Hk,
            .T = between(1, 8),
            .S = between(1, 9),
            .D = between(1, 4),
            .Dv = between(1, 4)};
  }

  Alignment draw_alignment() {
    return {rng.below(2) ? Alignment::Kind::bottom_right : Alignment::Kind::offset, between(-2, 3)};
  }

  void draw_mask(uint64_t seed) {
    Mask& mask = options.mask;
    if (seed & 1) mask.causal = Causal{draw_alignment()};
    if (seed & 2) mask.window = Window{between(0, 3), between(0, 3), draw_alignment()};
    for (int64_t b = 0; b < n.B; ++b) lengths.push_back(between(0, n.S));
    if (seed & 4) mask.lengths = Lengths{lengths};
    queries = {0, between(0, n.T), n.T};
    keys = {0, between(0, n.S), n.S};
    if (packed(seed)) mask.packed = Packed{queries, keys};
  }

  // sum(d_out * out), whose gradients are those that backward gives for d_out.
  double functional() const {
    const Result r = run(q, k, v, options);
    double sum = 0;
    for (size_t i = 0; i < r.out.data.size(); ++i) sum += d_out.data[i] * r.out.data[i];
    return sum;
  }
};

double largest(const std::vector<double>& values) {
  double most = 0;
  for (double x : values) most = std::max(most, std::abs(x));
  return most;
}

// The largest distance of a gradient from the central difference. Truncation leaves about h^2 = 1e-10, rounding about
// 1e-16 / h = 1e-11, both times the size of the functional.
double difference_error(const Draw& draw, std::vector<double>& x, const std::vector<double>& gradient) {
  const double h = 1e-5;
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + h;
    const double above = draw.functional();
    x[i] = middle - h;
    const double below = draw.functional();
    x[i] = middle;
    error = std::max(error, std::abs((above - below) / (2 * h) - gradient[i]));
  }
  return error;
}

TEST(ReferenceGradients, AgreeWithCentralDifferences) {
  uint64_t informative = 0;
  for (uint64_t seed = 0; seed < 192; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const Gradient g = run_backward(draw.q, draw.k, draw.v, draw.d_out, draw.options);
    // One scale for all three: where every query sees at most one key, dq and dk are exactly zero.
    const double scale = std::max({largest(g.dq.data), largest(g.dk.data), largest(g.dv.data)});
    EXPECT_LE(difference_error(draw, draw.q.data, g.dq.data), 1e-7 * scale);
    EXPECT_LE(difference_error(draw, draw.k.data, g.dk.data), 1e-7 * scale);
    EXPECT_LE(difference_error(draw, draw.v.data, g.dv.data), 1e-7 * scale);
    informative += largest(g.dq.data) > 1e-2 * scale && largest(g.dk.data) > 1e-2 * scale;
  }
  EXPECT_GE(informative, 64u);  // draws in which all three gradients were really tried
}

TEST(ReferenceGradients, AnEmptyViewIsNotWantedAndChangesNothingElse) {
  const Draw draw(0);
  const Gradient all = run_backward(draw.q, draw.k, draw.v, draw.d_out, draw.options);
  const Inputs in{draw.q.view(), draw.k.view(), draw.v.view()};
  Array4 dq(draw.q.shape), dk(draw.k.shape), dv(draw.v.shape);
  attention_backward(in, {.d_out = draw.d_out.view(), .dq = dq.view()}, draw.options);
  attention_backward(in, {.d_out = draw.d_out.view(), .dk = dk.view()}, draw.options);
  attention_backward(in, {.d_out = draw.d_out.view(), .dv = dv.view()}, draw.options);
  attention_backward(in, {.d_out = draw.d_out.view()}, draw.options);
  EXPECT_EQ(dq.data, all.dq.data);
  EXPECT_EQ(dk.data, all.dk.data);
  EXPECT_EQ(dv.data, all.dv.data);
}

// The same elements, laid out [B,T,H,D].
Array4 heads_inside(const Array4& x) {
  const auto [B, H, T, D] = x.shape;
  Array4 y({B, T, H, D});
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < T; ++t) std::copy_n(x.view().at(b, h, t), D, y.view().at(b, t, h));
    }
  }
  return y;
}

TEST(ReferenceGradients, StridedViewsGiveTheSame) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Draw draw(seed);
    const Result plain = run(draw.q, draw.k, draw.v, draw.options);
    const Gradient g = run_backward(draw.q, draw.k, draw.v, draw.d_out, draw.options);

    const Array4 q = heads_inside(draw.q), k = heads_inside(draw.k), v = heads_inside(draw.v),
                 d_out = heads_inside(draw.d_out);
    Array4 out(d_out.shape), dq(q.shape), dk(k.shape), dv(v.shape);
    const Inputs in{q.view().transposed(1, 2), k.view().transposed(1, 2), v.view().transposed(1, 2)};
    attention_forward(in, {.out = out.view().transposed(1, 2)}, draw.options);
    attention_backward(in,
                       {d_out.view().transposed(1, 2), dq.view().transposed(1, 2), dk.view().transposed(1, 2),
                        dv.view().transposed(1, 2)},
                       draw.options);
    EXPECT_EQ(out.data, heads_inside(plain.out).data);
    EXPECT_EQ(dq.data, heads_inside(g.dq).data);
    EXPECT_EQ(dk.data, heads_inside(g.dk).data);
    EXPECT_EQ(dv.data, heads_inside(g.dv).data);
  }
}

}  // namespace
}  // namespace heed::kernels::reference
