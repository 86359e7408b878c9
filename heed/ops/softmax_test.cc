// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;

// Numbers differ by at most 4, which a rounding of the exponent's argument makes 4 units of the weight; sums go over
// the width.
TEST(SoftmaxOp, IsRight) {
  check_op(100, [](Rng& rng) {
    const int64_t width = draw_width(rng);
    const bool log = rng.below(2);
    return Case{.what = log ? "log_softmax" : "softmax",
                .inputs = {draw(rng, draw_shape(rng, width))},
                .op = [=](const Context& c,
                          std::span<const Var> in) { return log ? log_softmax(c, in[0]) : softmax(c, in[0]); },
                .roundings = 2 * static_cast<double>(width) + 24};
  });
}

Tensor draw_targets(Rng& rng, const Shape& logits, int32_t ignored) {
  const int64_t V = logits[-1];
  std::vector<int32_t> targets;
  for (int64_t n = logits.size() / V; n > 0; --n) {
    targets.push_back(rng.below(4) == 0 ? ignored : static_cast<int32_t>(between(rng, 0, V - 1)));
  }
  return Tensor::of({static_cast<int64_t>(targets.size())}, targets);
}

// Sums go over the vocabulary; that over the tokens is taken in double.
TEST(CrossEntropy, IsRight) {
  check_op(120, [](Rng& rng) {
    const int64_t V = draw_width(rng);
    const Shape shape = draw_shape(rng, V);
    const int32_t ignored = pick<int32_t>(rng, {-100, 0});
    const Tensor targets = draw_targets(rng, shape, ignored);
    const double smoothing = pick<double>(rng, {0, 0.1, 0.7, 1});
    return Case{.what = line("cross_entropy, smoothing ", smoothing),
                .inputs = {draw(rng, shape)},
                .op =
                    [=](const Context& c, std::span<const Var> in) {
                      return cross_entropy(c, in[0], targets, {.smoothing = smoothing, .ignored = ignored}).loss;
                    },
                .roundings = 2 * static_cast<double>(V) + 24};
  });
}

// Logits (0, ln 3): probabilities (1/4, 3/4).
TEST(CrossEntropy, OfTwoTokensByHand) {
  Bench bench;
  const double ln3 = std::log(3.0), ln4 = std::log(4.0);
  const Tensor logits = Tensor::of({3, 2}, std::vector<double>{0, ln3, 0, ln3, 0, ln3});
  const Tensor targets = Tensor::of({3}, std::vector<int32_t>{0, -100, 1});
  const CrossEntropyResult plain = cross_entropy(bench.context, logits, targets);
  EXPECT_EQ(plain.count, 2);
  EXPECT_NEAR(plain.sum, ln4 + (ln4 - ln3), 1e-15);
  EXPECT_NEAR(plain.loss.value().item(), plain.sum / 2, 1e-15);
  const double smooth = cross_entropy(bench.context, logits, targets, {.smoothing = 0.5}).sum;
  EXPECT_NEAR(smooth, 0.5 * plain.sum + 0.5 * 2 * (ln4 - ln3 / 2), 1e-15);
}

TEST(CrossEntropy, OfIgnoredTokensAloneIsZero) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Bench bench;
    const Var logits = bench.tape.leaf(Tensor::full({2, 3}, 1, dtype));
    const CrossEntropyResult result = cross_entropy(bench.context, logits, Tensor::full({2}, -100, DType::i32));
    EXPECT_EQ(result.loss.value().item(), 0);
    EXPECT_EQ(result.count, 0);
    bench.tape.backward(result.loss, bench.context);
    for (double d : bench.tape.gradient(logits).to_doubles()) EXPECT_EQ(d, 0);
  }
}

TEST(CrossEntropy, OfNoTokensIsZero) {
  Bench bench;
  const Var logits = bench.tape.leaf(Tensor::zeros({0, 3}));
  const CrossEntropyResult result = cross_entropy(bench.context, logits, Tensor::zeros({0}, DType::i32));
  EXPECT_EQ(result.loss.value().item(), 0);
  bench.tape.backward(result.loss, bench.context);
}

TEST(SoftmaxOp, NothingGivesNothing) {
  for (const Shape& shape : {Shape{0, 5}, Shape{3, 0}}) {
    const Tensor none = Tensor::zeros(shape, DType::f64);
    expect_nothing_of_nothing([](const Context& c, auto in) { return softmax(c, in[0]); }, {none});
    expect_nothing_of_nothing([](const Context& c, auto in) { return log_softmax(c, in[0]); }, {none});
  }
}

TEST(SoftmaxOp, SaysWhatIsWrong) {
  Bench bench;
  const Context& c = bench.context;
  EXPECT_EQ(error_of([&] { softmax(c, {}); }), "softmax: x is missing");
  EXPECT_EQ(error_of([&] { log_softmax(c, Tensor::zeros({})); }),
            "log_softmax: x has shape [], expected at least one dimension");
}

TEST(CrossEntropy, SaysWhatIsWrong) {
  Bench bench;
  const Var logits = Tensor::zeros({2, 3});
  const auto error = [&](const Tensor& targets, const CrossEntropyOptions& options = {}) {
    return error_of([&] { cross_entropy(bench.context, logits, targets, options); });
  };
  const Tensor targets = Tensor::zeros({2}, DType::i32);
  EXPECT_EQ(error_of([&] { cross_entropy(bench.context, {}, targets); }), "cross_entropy: logits is missing");
  EXPECT_EQ(error(Tensor::zeros({2})), "cross_entropy: targets are not i32, expected token ids");
  EXPECT_EQ(error(Tensor::zeros({3}, DType::i32)),
            "cross_entropy: targets have shape [3], expected one for each of [2, 3] without its last dimension");
  EXPECT_EQ(error(Tensor::full({2}, 3, DType::i32)), "cross_entropy: a target is 3, expected 0 to 2");
  EXPECT_EQ(error(Tensor::full({2}, -1, DType::i32)), "cross_entropy: a target is -1, expected 0 to 2");
  EXPECT_EQ(error(targets, {.smoothing = 1.5}), "cross_entropy: smoothing is 1.500000, expected 0 to 1");
}

}  // namespace
}  // namespace heed::ops
