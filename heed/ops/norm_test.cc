// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;

// The largest 1 / sqrt(variance + eps) of all rows: what is left of x where the mean is taken away is wrong by a
// rounding of x, and this multiplies it. About 0 for RMS norm.
double largest_rstd(const Tensor& x, double eps, bool centred) {
  const View<const double, 2> rows = x.view<const double, 2>();
  double largest = 0;
  for (int64_t r = 0; r < rows.shape(0); ++r) {
    double mean = 0, squares = 0;
    for (int64_t c = 0; centred && c < rows.shape(1); ++c) mean += rows(r, c) / static_cast<double>(rows.shape(1));
    for (int64_t c = 0; c < rows.shape(1); ++c) squares += (rows(r, c) - mean) * (rows(r, c) - mean);
    largest = std::max(largest, 1 / std::sqrt(squares / static_cast<double>(rows.shape(1)) + eps));
  }
  return largest;
}

// Sums go over the width, and over the rows for weight and bias. dx has two factors that rstd makes large.
Case draw_case(Rng& rng, bool centred) {
  const int64_t width = draw_width(rng);
  const Shape shape = draw_shape(rng, width);
  const double eps = width < 3 ? 0.1 : pick<double>(rng, {1e-5, 1e-3, 0.1});
  const bool weight = rng.below(3) > 0, bias = centred && rng.below(3) > 0;
  Case test{.what = line(centred ? "layer_norm" : "rms_norm", ", eps ", eps),
            .inputs = {draw(rng, shape)},
            .roundings = static_cast<double>(2 * width + shape.size() / width) + 24};
  const double rstd = std::max(1.0, largest_rstd(test.inputs[0], eps, centred));
  test.size = 4 * rstd * rstd;
  if (weight) test.inputs.push_back(draw(rng, {width}));
  if (bias) test.inputs.push_back(draw(rng, {width}));
  test.op = [=](const Context& c, std::span<const Var> in) {
    const Var w = weight ? in[1] : Var(), b = bias ? in[weight ? 2 : 1] : Var();
    return centred ? layer_norm(c, in[0], w, b, eps) : rms_norm(c, in[0], w, eps);
  };
  return test;
}

TEST(LayerNorm, IsRight) {
  check_op(100, [](Rng& rng) { return draw_case(rng, true); });
}

TEST(RmsNorm, IsRight) {
  check_op(100, [](Rng& rng) { return draw_case(rng, false); });
}

// (1, 3): mean 2, deviation 1.
TEST(LayerNorm, OfARowByHand) {
  Bench bench;
  const Tensor x = Tensor::of({2}, std::vector<double>{1, 3}), w = Tensor::of({2}, std::vector<double>{10, 10}),
               b = Tensor::of({2}, std::vector<double>{5, 6});
  EXPECT_EQ(layer_norm(bench.context, x, w, b, 0).value().to_doubles(), (std::vector<double>{-5, 16}));
}

// One value as weight and as bias.
TEST(LayerNorm, WeightAndBiasMayBeOneValue) {
  check_op(10, [](Rng& rng) {
    const int64_t width = between(rng, 3, 40);
    const Shape shape{between(rng, 1, 80), width};
    return Case{.what = "layer_norm",
                .inputs = {draw(rng, shape), draw(rng, {width})},
                .op = [](const Context& c, std::span<const Var> in) { return layer_norm(c, in[0], in[1], in[1], 0.1); },
                .roundings = static_cast<double>(2 * width + shape[0]) + 24,
                .size = 4 * 10};
  });
}

TEST(Norm, NothingGivesNothing) {
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::f64); };
  for (const Shape& shape : {Shape{0, 5}, Shape{3, 0}, Shape{0}}) {
    SCOPED_TRACE(to_string(shape));
    expect_nothing_of_nothing([](const Context& c, auto in) { return layer_norm(c, in[0], in[1], in[1]); },
                              {zeros(shape), zeros({shape[-1]})});
    expect_nothing_of_nothing([](const Context& c, auto in) { return rms_norm(c, in[0], in[1]); },
                              {zeros(shape), zeros({shape[-1]})});
  }
}

TEST(Norm, SaysWhatIsWrong) {
  Bench bench;
  const Context& c = bench.context;
  const Var x = Tensor::zeros({2, 3}), none;
  EXPECT_EQ(error_of([&] { layer_norm(c, none, none, none); }), "layer_norm: x is missing");
  EXPECT_EQ(error_of([&] { rms_norm(c, Tensor::zeros({}), none); }),
            "rms_norm: x has shape [], expected at least one dimension");
  EXPECT_EQ(error_of([&] { layer_norm(c, x, Tensor::zeros({2}), none); }),
            "layer_norm: weight has shape [2], expected [3]");
  EXPECT_EQ(error_of([&] { layer_norm(c, x, none, Tensor::zeros({3}, DType::f64)); }),
            "layer_norm: bias is in f64, expected f32");
  EXPECT_EQ(error_of([&] {
              rms_norm(c, x, Tensor::zeros({1, 3}));
            }),
            "rms_norm: weight has shape [1, 3], expected [3]");
  EXPECT_EQ(error_of([&] { rms_norm(c, x, none, -1); }), "rms_norm: eps is -1.000000, expected 0 or more");
}

}  // namespace
}  // namespace heed::ops
