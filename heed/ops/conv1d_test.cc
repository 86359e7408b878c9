// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/conv1d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;

// x = (1, 2, 3) of one number each, w = (10, 1, 100), b = 0.5: y_0 = 1 + 200, y_1 = 10 + 2 + 300, y_2 = 20 + 3, each +
// 0.5. Of a row of two tokens, the third counts as zero.
TEST(Conv1d, IsTheFormula) {
  Bench bench;
  const std::vector<int64_t> lengths{3, 2};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of({2, 3, 1}, std::vector<double>{1, 2, 3, 1, 2, NAN}).converted(dtype);
    const Tensor w = Tensor::of({1, 3}, std::vector<double>{10, 1, 100}).converted(dtype);
    const Tensor y = conv1d(bench.without_tape, x, w, Tensor::full({1}, 0.5, dtype), lengths).value();
    EXPECT_EQ(y.to_doubles(), (std::vector<double>{201.5, 312.5, 23.5, 201.5, 12.5, 0}));
  }
}

TEST(Conv1d, IsRight) {
  check_op(60, [](Rng& rng) {
    const int64_t B = between(rng, 1, 4), T = between(rng, 1, 9), I = between(rng, 1, 6), O = draw_width(rng);
    const int64_t K = 1 + 2 * between(rng, 0, 2);
    const bool bias = rng.below(3) > 0;
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < B && rng.below(6); ++b) lengths.push_back(between(rng, 0, T));
    if (std::ssize(lengths) < B) lengths.clear();
    std::vector<Tensor> inputs{draw(rng, {B, T, I}), draw(rng, {O, K * I}, 0.1f, 1)};
    if (bias) inputs.push_back(draw(rng, {O}));
    return Case{.what = line("conv1d of ", K, " taps"),
                .inputs = inputs,
                .op = [=, kept = std::make_shared<const std::vector<int64_t>>(lengths)](
                          const Context& c,
                          std::span<const Var> in) { return conv1d(c, in[0], in[1], bias ? in[2] : Var(), *kept); },
                .roundings = static_cast<double>(K * I + O + K + B * T) + 16};
  });
}

TEST(Conv1d, OfNothingIsNothing) {
  for (const Shape& x : {Shape{0, 3, 2}, Shape{2, 0, 2}}) {
    expect_nothing_of_nothing([](const Context& c, std::span<const Var> in) { return conv1d(c, in[0], in[1], {}); },
                              {Tensor::zeros(x, DType::f64), Tensor::zeros({4, 6}, DType::f64)});
  }
}

TEST(Conv1d, SaysWhatDoesNotFit) {
  Bench bench;
  const auto run = [&](const Shape& x, const Shape& w, const std::vector<int64_t>& lengths) {
    return error_of([&] { conv1d(bench.without_tape, Tensor::zeros(x), Tensor::zeros(w), {}, lengths); });
  };
  EXPECT_EQ(run({2, 3}, {1, 3}, {}), "conv1d: x has shape [2, 3], expected 3 dimensions: batch, tokens, width");
  EXPECT_EQ(run({2, 3, 2}, {1, 4}, {}), "conv1d: w has shape [1, 4], expected [O, K * 2], K odd");
  EXPECT_EQ(run({2, 3, 2}, {1, 6}, {1}), "conv1d: 1 lengths came, expected 2");
  EXPECT_EQ(run({2, 3, 2}, {1, 6}, {1, 4}), "conv1d: a length is 4, expected 0 to 3");
}

}  // namespace
}  // namespace heed::ops
