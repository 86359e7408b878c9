// SPDX-License-Identifier: Apache-2.0
#include "heed/autograd/gradcheck.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heed/autograd/testing.h"
#include "heed/base/rng.h"
#include "heed/base/testing.h"

namespace heed {
namespace {

using namespace autograd_testing;
using heed::testing::seeded;
using testing::error_of;

// y = sin(x); backward is off by a factor in one element, if asked to be.
Var sine(const Context& context, const Var& x, double factor = 1, int64_t wrong = 0) {
  const Tensor y = Tensor::like(x.value());
  for (int64_t i = 0; i < y.size(); ++i) y.data<double>()[i] = std::sin(x.value().data<double>()[i]);
  return record(context, {x}, y, [from = x.value(), factor, wrong](const Backward& backward) {
    const Tensor to = backward.to(0);
    for (int64_t i = 0; i < to.size(); ++i) {
      const double slope = std::cos(from.data<double>()[i]) * (i == wrong ? factor : 1);
      to.data<double>()[i] += backward.of(0).data<double>()[i] * slope;
    }
  });
}

const std::vector<Tensor>& inputs() {
  static const std::vector<Tensor> both{vector({0.3, -1.1, 0.8}), vector({1.2, 0.4, -0.7})};
  return both;
}

TEST(Gradcheck, AcceptsARightGradient) {
  const auto f = [](Context& c, std::span<const Var> in) { return multiply(c, sine(c, in[0]), in[1]); };
  const auto before = inputs()[0].to_doubles();
  const GradcheckResult result = gradcheck(f, inputs());
  EXPECT_LT(result.error, 1e-9) << result.where;
  EXPECT_GT(result.largest, 0.5);
  EXPECT_EQ(inputs()[0].to_doubles(), before);
}

TEST(Gradcheck, FindsAWrongGradient) {
  const auto f = [](Context& c, std::span<const Var> in) { return multiply(c, in[0], sine(c, in[1], 1.00001, 1)); };
  const GradcheckResult result = gradcheck(f, inputs());
  EXPECT_GT(result.error, 1e-7);
  EXPECT_LT(result.error, 1e-5);
  EXPECT_EQ(result.where, "input 1[1]");
}

TEST(Gradcheck, FindsAGradientThatIsMissing) {
  const auto f = [](Context& c, std::span<const Var> in) { return multiply(c, in[0], Var(in[1].value())); };
  const GradcheckResult result = gradcheck(f, inputs());
  EXPECT_NEAR(result.error, 1, 1e-9);
  EXPECT_EQ(result.where.substr(0, 7), "input 1");
}

// Wrong by a thousandth in one of very small gradients.
TEST(Gradcheck, SmallGradientsCountByThemselves) {
  const auto f = [](Context& c, std::span<const Var> in) {
    return plus(c, in[0], multiply(c, vector({0.01, 0.01, 0.01}), sine(c, in[1], 1.001, 2)));
  };
  EXPECT_GT(gradcheck(f, inputs()).error, 1e-4);
}

// x - x: its gradient is zero, and differences give what rounding leaves.
TEST(Gradcheck, AGradientOfZeroIsMeasuredByTheOthers) {
  const auto f = [](Context& c, std::span<const Var> in) {
    const Var minus = multiply(c, in[0], vector({-1, -1, -1}));
    return plus(c, plus(c, plus(c, sine(c, in[1]), in[0]), vector({0.1, 0.7, 0.3})), minus);
  };
  EXPECT_LT(gradcheck(f, inputs()).error, 1e-7);
}

// Whatever comes after it.
TEST(Gradcheck, NotANumberIsAnInfiniteError) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double factor : {std::numeric_limits<double>::quiet_NaN(), kInfinity}) {
    for (const int64_t at : {0, 1, 2}) {
      const auto f = [&](Context& c, std::span<const Var> in) { return plus(c, sine(c, in[0], factor, at), in[1]); };
      const GradcheckResult result = gradcheck(f, inputs());
      EXPECT_EQ(result.error, kInfinity);
      EXPECT_EQ(result.where, "input 0[" + std::to_string(at) + "]");
    }
  }
}

TEST(Gradcheck, TriesSomeElementsIfAsked) {
  int calls = 0;
  const auto f = [&](Context& c, std::span<const Var> in) {
    ++calls;
    return sine(c, in[0]);
  };
  EXPECT_LT(gradcheck(f, {Tensor::full({1000}, 0.5, DType::f64)}, {.samples = 7}).error, 1e-9);
  EXPECT_EQ(calls, 1 + 2 * 7);
}

// Each tensor as a whole; one element of a thousand is enough to be found.
TEST(Gradcheck, TriesDirectionsIfAsked) {
  int calls = 0;
  double factor = 1;
  const auto f = [&](Context& c, std::span<const Var> in) {
    ++calls;
    return multiply(c, sine(c, in[0], factor, 500), in[1]);
  };
  Rng rng(seeded(9));
  const Tensor x = Tensor::uninitialised({1000}, DType::f64), y = Tensor::uninitialised({1000}, DType::f64);
  for (double& element : x.span<double>()) element = static_cast<double>(rng.uniform(-1, 1));
  for (double& element : y.span<double>()) element = static_cast<double>(rng.uniform(-1, 1));
  const auto before = x.to_doubles();
  EXPECT_LT(gradcheck(f, {x, y}, {.directions = 3}).error, 1e-8);
  EXPECT_EQ(calls, 1 + 2 * 2 * 3);
  EXPECT_EQ(x.to_doubles(), before);
  factor = 1.1;
  EXPECT_EQ(gradcheck(f, {x, y}, {.directions = 3}).where, "input 0");
  EXPECT_GT(gradcheck(f, {x, y}, {.directions = 3}).error, 1e-7);
}

struct Scale {
  Parameter weight, unused;
  void visit(auto&& each) {
    each("weight", weight);
    each("unused", unused);
  }
  Var operator()(const Context& c, const Var& x, double factor = 1) const {
    return multiply(c, sine(c, c.tape ? c.tape->leaf(weight.value, weight.gradient) : Var(weight.value), factor), x);
  }
};

TEST(Gradcheck, ChecksTheParametersOfAStore) {
  Scale scale{{.value = inputs()[0].clone()}, {.value = vector({1})}};
  const ParameterStore store(scale, DType::f64);
  EXPECT_LT(gradcheck([&](Context& c) { return scale(c, inputs()[1]); }, store).error, 1e-9);
  EXPECT_LT(gradcheck([&](Context& c) { return scale(c, inputs()[1]); }, store).error, 1e-9) << "a second time";
  const GradcheckResult wrong = gradcheck([&](Context& c) { return scale(c, inputs()[1], 1.001); }, store);
  EXPECT_GT(wrong.error, 1e-5);
  EXPECT_EQ(wrong.where, "weight[0]");
}

TEST(Gradcheck, RejectsWhatIsNotInDouble) {
  const auto f = [](Context& c, std::span<const Var> in) { return sine(c, in[0]); };
  EXPECT_EQ(error_of([&] { gradcheck(f, {Tensor::zeros({2})}); }), "gradcheck: input 0 is in f32, expected f64");
  EXPECT_EQ(error_of([&] { gradcheck(f, {Tensor()}); }), "gradcheck: input 0 is empty, expected f64");
  Scale scale{{.value = vector({1})}, {}};
  const ParameterStore store(scale, DType::f32);
  EXPECT_EQ(error_of([&] { gradcheck([&](Context& c) { return scale(c, vector({1})); }, store); }),
            "gradcheck: the parameter store is in f32, expected f64");
}

}  // namespace
}  // namespace heed
