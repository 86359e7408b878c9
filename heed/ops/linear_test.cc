// SPDX-License-Identifier: Apache-2.0
#include "heed/ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/base/testing.h"
#include "heed/ops/testing.h"

namespace heed::ops {
namespace {

using namespace ops_testing;
using heed::testing::seeded;

// No element of x w^T + b is so near to zero that a step of the finite differences, or a rounding, changes its sign.
bool away_from_kink(const std::vector<Tensor>& in) {
  Bench bench;
  const Var b = in.size() > 2 ? Var(in[2]) : Var();
  for (const double z : linear(bench.without_tape, in[0], in[1], b).value().to_doubles()) {
    if (std::abs(z) < 1e-3) return false;
  }
  return true;
}

// y is a sum of I + 1 terms, dx of O and dw of M; before those, z has gone through I + 1 roundings, which the slope of
// the activation sees, and the activation through a few.
TEST(Linear, IsRight) {
  check_op(100, [](Rng& rng) {
    const int64_t I = draw_width(rng), O = draw_width(rng);
    const Shape shape = draw_shape(rng, I);
    const auto kind = static_cast<Activation>(rng.below(7));
    const bool bias = rng.below(3) > 0;
    std::vector<Tensor> inputs;
    do {
      inputs = {draw(rng, shape), draw(rng, {O, I}, 0.1f, 1)};
      if (bias) inputs.push_back(draw(rng, {O}));
    } while (kind == Activation::relu && !away_from_kink(inputs));
    return Case{.what = line("linear, ", kernels::name_of(kind)),
                .inputs = inputs,
                .op = [=](const Context& c,
                          std::span<const Var> in) { return linear(c, in[0], in[1], bias ? in[2] : Var(), kind); },
                .roundings = static_cast<double>(2 * I + O + shape.size() / I) + 16};
  });
}

// Large enough for blocks of many rows and for several tasks.
TEST(Linear, IsRightForManyRows) {
  check_op(6, [](Rng& rng) {
    const int64_t M = between(rng, 65, 300), I = between(rng, 30, 140), O = between(rng, 30, 300);
    return Case{.what = "linear",
                .inputs = {draw(rng, {M, I}), draw(rng, {O, I}, 0.02f, 0.2f), draw(rng, {O})},
                .op = [](const Context& c,
                         std::span<const Var> in) { return linear(c, in[0], in[1], in[2], Activation::gelu); },
                .roundings = static_cast<double>(2 * I + O + M) + 16};
  });
}

// x x^T: a value that is both factors.
TEST(Linear, OfAValueWithItself) {
  check_op(20, [](Rng& rng) {
    const int64_t M = between(rng, 1, 70), I = draw_width(rng);
    return Case{.what = "linear of x and x",
                .inputs = {draw(rng, {M, I})},
                .op = [](const Context& c, std::span<const Var> in) { return linear(c, in[0], in[0]); },
                .roundings = static_cast<double>(I + 2 * M) + 4};
  });
}

TEST(Linear, WithoutATapeGivesTheSameBits) {
  Bench bench;
  Rng rng(seeded(3));
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = draw(rng, {3, 5}).converted(dtype), w = draw(rng, {7, 5}).converted(dtype);
    const Var taped = linear(bench.context, bench.tape.leaf(x), w, {}, Activation::silu);
    EXPECT_TRUE(same_bits(taped.value(), linear(bench.without_tape, x, w, {}, Activation::silu).value()));
  }
}

TEST(Linear, OverAWeightForInference) {
  Bench bench;
  Rng rng(seeded(4));
  const int64_t I = 19, O = 33;
  for (const int64_t M : {1, 7, 90}) {
    const Tensor x = draw(rng, {M, I}), w = draw(rng, {O, I}, 0.1f, 1), b = draw(rng, {O});
    const Tensor expected = linear(bench.without_tape, x, w, b, Activation::gelu).value();
    const Tensor single = w.converted(DType::f32);
    const kernels::Weight stored(single.view<const float, 2>());
    const kernels::PackedWeight packed(stored, DType::f32, bench.parallel);
    for (const kernels::Weight& weight : {stored, packed.weight()}) {
      const Tensor y =
          linear(bench.without_tape, x.converted(DType::f32), weight, b.converted(DType::f32), Activation::gelu);
      expect_near("y", y, expected, {.roundings = static_cast<double>(I) + 16});
    }
  }
}

TEST(Linear, NothingGivesNothing) {
  const auto op = [](const Context& c, std::span<const Var> in) { return linear(c, in[0], in[1], in[2]); };
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::f64); };
  expect_nothing_of_nothing(op, {zeros({0, 4}), zeros({3, 4}), zeros({3})});
  expect_nothing_of_nothing(op, {zeros({2, 4}), zeros({0, 4}), zeros({0})});
}

// A sum over nothing is zero: the bias is left.
TEST(Linear, OfNoInputsIsTheBias) {
  Bench bench;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Var y =
        linear(bench.context, Tensor::zeros({2, 0}, dtype), Tensor::zeros({3, 0}, dtype), Tensor::full({3}, 5, dtype));
    EXPECT_EQ(y.value().to_doubles(), (std::vector<double>{5, 5, 5, 5, 5, 5}));
  }
}

TEST(Linear, SaysWhatIsWrong) {
  Bench bench;
  const Context& c = bench.context;
  const Var x = Tensor::zeros({2, 3}), w = Tensor::zeros({4, 3}), none;
  EXPECT_EQ(error_of([&] { linear(c, none, w); }), "linear: x is missing");
  EXPECT_EQ(error_of([&] { linear(c, x, none); }), "linear: w is missing");
  EXPECT_EQ(error_of([&] { linear(c, x, Tensor::zeros({3, 4})); }), "linear: w has shape [3, 4], expected [O, 3]");
  EXPECT_EQ(error_of([&] { linear(c, x, Tensor::zeros({4, 3}, DType::f64)); }), "linear: w is in f64, expected f32");
  EXPECT_EQ(error_of([&] { linear(c, x, w, Tensor::zeros({3})); }), "linear: b has shape [3], expected [4]");
  EXPECT_EQ(error_of([&] { linear(c, x, w, Tensor::zeros({4}, DType::f64)); }), "linear: b is in f64, expected f32");
  EXPECT_EQ(error_of([&] { linear(c, Tensor::zeros({}), w); }),
            "linear: x has shape [], expected at least one dimension");
  const kernels::Weight weight(w.value().view<const float, 2>());
  EXPECT_EQ(error_of([&] { linear(c, Tensor::zeros({2, 5}), weight); }), "linear: w has shape [4, 3], expected [O, 5]");
  EXPECT_EQ(error_of([&] {
              linear(c, Tensor::zeros({2, 3}, DType::f64), weight);
            }),
            "linear: x is in f64, expected f32");
  EXPECT_EQ(error_of([&] { linear(c, x.value(), weight, Tensor::zeros({4}, DType::f64)); }),
            "linear: b is in f64, expected f32");
}

}  // namespace
}  // namespace heed::ops
