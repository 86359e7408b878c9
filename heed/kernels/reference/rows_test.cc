// SPDX-License-Identifier: Apache-2.0
// The twins of the kernels over rows, against examples worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "heed/kernels/reference/activation.h"
#include "heed/kernels/reference/dropout.h"
#include "heed/kernels/reference/elementwise.h"
#include "heed/kernels/reference/embedding.h"
#include "heed/kernels/reference/loss.h"
#include "heed/kernels/reference/norm.h"
#include "heed/kernels/reference/optimizer.h"
#include "heed/kernels/reference/rope.h"
#include "heed/kernels/reference/softmax.h"
#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

TEST(ReferenceActivation, KnownValues) {
  EXPECT_EQ(activate(Activation::none, -3), -3);
  EXPECT_EQ(activate(Activation::relu, -3), 0);
  EXPECT_EQ(activate(Activation::relu, 3), 3);
  EXPECT_DOUBLE_EQ(activate(Activation::sigmoid, kLn3), 0.75);
  EXPECT_DOUBLE_EQ(activate(Activation::silu, kLn3), 0.75 * kLn3);
  EXPECT_DOUBLE_EQ(activate(Activation::tanh, kLn3), 0.8);  // (3 - 1/3) / (3 + 1/3)
  // Phi(1), from tables of the normal distribution.
  EXPECT_NEAR(activate(Activation::gelu, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(activate(Activation::gelu, -1), -0.15865525393145705, 1e-15);
  const double z = std::sqrt(2 / std::numbers::pi) * 1.044715;
  EXPECT_NEAR(activate(Activation::gelu_tanh, 1), (1 + std::tanh(z)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(slope(Activation::sigmoid, kLn3), 0.1875);
  EXPECT_DOUBLE_EQ(slope(Activation::tanh, kLn3), 0.36);
  EXPECT_EQ(slope(Activation::relu, 0), 0);
  EXPECT_EQ(slope(Activation::gelu, 0), 0.5);
  EXPECT_TRUE(std::isnan(activate(Activation::relu, kNaN)) && std::isnan(slope(Activation::relu, kNaN)));
}

// (1, 3) and (2, 2): mean 2, deviations 1 and 0.
TEST(ReferenceNorm, KnownValues) {
  const Array<2> x({2, 2}, {1, 3, 2, 2});
  const Array<1> weight({2}, {10, 100}), bias({2}, {5, 7});
  Array<2> y({2, 2}, kNaN);
  Array<1> mean({2}, kNaN), rstd({2}, kNaN);
  layer_norm_forward({x.view(), weight.view(), bias.view(), 0.0}, {y.view(), mean.view(), rstd.view()});
  EXPECT_EQ(mean.data, (std::vector<double>{2, 2}));
  EXPECT_EQ(rstd.data, (std::vector<double>{1, kInfinity}));
  EXPECT_EQ(y.view()(0, 0), -5);
  EXPECT_EQ(y.view()(0, 1), 107);
  layer_norm_forward({x.view(), weight.view(), bias.view(), 3.0}, {.y = y.view()});  // sqrt(1 + 3) = 2
  expect_near(y.data, {0, 57, 5, 7});
  const Array<2> three_four({1, 2}, {3, 4});
  Array<2> z({1, 2}, kNaN);
  rms_norm_forward({.x = three_four.view(), .eps = 0.0}, {.y = z.view()});
  expect_near(z.data, {3 / std::sqrt(12.5), 4 / std::sqrt(12.5)});
}

TEST(ReferenceSoftmax, KnownValues) {
  const Array<2> x({2, 3}, {0, kLn2, kLn3, 1000, 1000, -kInfinity});
  Array<2> y({2, 3}, kNaN), log_y({2, 3}, kNaN);
  softmax_forward(x.view(), y.view());
  log_softmax_forward(x.view(), log_y.view());
  expect_near(y.data, {1.0 / 6, 1.0 / 3, 0.5, 0.5, 0.5, 0});
  expect_near(log_y.data, {-std::log(6), -kLn3, -kLn2, -kLn2, -kLn2, -kInfinity});
}

TEST(ReferenceDropout, KeepsOrDropsAndScales) {
  const ElementDropout dropout{0.25f, 1, 2};
  const Array<1> x({100}, 3.0), residual({100}, 1.0);
  Array<1> y({100}, kNaN), with({100}, kNaN), dx({100}, 1.0);
  dropout_forward(dropout, x.view(), {}, y.view());
  dropout_forward(dropout, x.view(), residual.view(), with.view());
  dropout_backward(dropout, x.view(), dx.view());
  int kept = 0;
  for (int64_t i = 0; i < 100; ++i) {
    kept += dropout.keeps(i);
    EXPECT_EQ(y.view()(i), dropout.keeps(i) ? 4 : 0);
    EXPECT_EQ(with.view()(i), dropout.keeps(i) ? 5 : 1);
    EXPECT_EQ(dx.view()(i), with.view()(i));
  }
  EXPECT_TRUE(kept > 55 && kept < 95) << kept;
}

TEST(ReferenceEmbedding, KnownValues) {
  const Array<2> table({3, 2}, {1, 2, 3, 4, 5, 6}), dy({3, 2}, {1, 10, 2, 20, 3, 30});
  const std::vector<int32_t> ids = {2, 0, 2};
  Array<2> y({3, 2}, kNaN), dtable({3, 2}, 1.0);
  embedding_forward(table.view(), {ids.data(), {3}}, 2, y.view());
  embedding_backward({ids.data(), {3}}, dy.view(), 2, dtable.view());
  EXPECT_EQ(y.data, (std::vector<double>{10, 12, 2, 4, 10, 12}));
  EXPECT_EQ(dtable.data, (std::vector<double>{5, 41, 1, 1, 9, 81}));
}

TEST(ReferenceElementwise, KnownValues) {
  const Array<2> a({2, 2}, {1, 2, 3, 4}), b({2, 2}, {10, 20, 30, 40});
  const Array<1> row({2}, {5, 6});
  Array<2> y({2, 2}, kNaN);
  add_forward(a.view(), b.view(), y.view());
  EXPECT_EQ(y.data, (std::vector<double>{11, 22, 33, 44}));
  add_row_forward(a.view(), row.view(), y.view());
  EXPECT_EQ(y.data, (std::vector<double>{6, 8, 8, 10}));
  scale_forward(a.view(), 3, y.view());
  EXPECT_EQ(y.data, (std::vector<double>{3, 6, 9, 12}));
  scale_backward(b.view(), 2, y.view());
  EXPECT_EQ(y.data, (std::vector<double>{23, 46, 69, 92}));
  Array<1> drow({2}, {1, 1});
  Array<2> da({2, 2}, 1.0), dx({2, 2}, 2.0);
  add_row_backward(a.view(), dx.view(), drow.view());
  add_backward(a.view(), da.view(), {});
  EXPECT_EQ(drow.data, (std::vector<double>{5, 7}));
  EXPECT_EQ(da.data, (std::vector<double>{2, 3, 4, 5}));
  EXPECT_EQ(dx.data, (std::vector<double>{3, 4, 5, 6}));
}

// Position 1 with base 1 and one frequency rotates by 1 radian; tables given by hand rotate by a right angle.
TEST(ReferenceRope, KnownValues) {
  Array<2> cos({2, 1}, kNaN), sin({2, 1}, kNaN);
  rope_tables(10000, cos.view(), sin.view());
  expect_near(cos.data, {1, std::cos(1)});
  EXPECT_EQ(sin.data, (std::vector<double>{0, std::sin(1)}));

  const Array<2> zero({1, 2}, 0.0), one({1, 2}, 1.0);
  const Array4 x({1, 1, 1, 5}, {1, 2, 3, 4, 5});
  Array4 y({1, 1, 1, 5}, kNaN), dx({1, 1, 1, 5}, 10.0);
  rope_forward({.cos = zero.view(), .sin = one.view()}, x.view(), y.view());
  EXPECT_EQ(y.data, (std::vector<double>{-3, -4, 1, 2, 5}));
  rope_forward({.cos = zero.view(), .sin = one.view(), .pairs = RopePairs::interleaved}, x.view(), y.view());
  EXPECT_EQ(y.data, (std::vector<double>{-2, 1, -4, 3, 5}));
  rope_backward({.cos = zero.view(), .sin = one.view()}, x.view(), dx.view());
  EXPECT_EQ(dx.data, (std::vector<double>{13, 14, 9, 8, 15}));
}

// Weights (1/4, 3/4), target 1: -log(3/4). Half smoothed: 3/4 of the weight on the target, 1/4 on the other.
TEST(ReferenceLoss, KnownValues) {
  const Array<2> z({3, 2}, {0, kLn3, 0, kLn3, kNaN, kNaN});
  const std::vector<int32_t> targets = {1, 0, -100};
  const View<const int32_t, 1> view(targets.data(), {3});
  Array<1> losses({3}, kNaN);
  Array<2> stats({3, 2}, kNaN), dz({3, 2}, 0.0);
  const CrossEntropySum plain = cross_entropy_forward({z.view(), view}, {losses.view(), stats.view()});
  expect_near(losses.data, {std::log(4.0 / 3), std::log(4), 0});
  EXPECT_EQ(plain.count, 2);
  EXPECT_DOUBLE_EQ(plain.mean(), (std::log(4.0 / 3) + std::log(4)) / 2);
  cross_entropy_backward({z.view(), view}, stats.view(), 2, dz.view());
  expect_near(dz.data, {0.5, -0.5, -1.5, 1.5, 0, 0});
  cross_entropy_forward({z.view(), view, 0.5}, {losses.view(), {}});
  expect_near({losses.data[0]}, {0.75 * std::log(4.0 / 3) + 0.25 * std::log(4)});
}

TEST(ReferenceOptimizer, SgdByHand) {
  Array<1> value({2}, {1, 1}), gradient({2}, {4, 4}), velocity({2}, 0.0);
  const ElementRange decayed[] = {{1, 2}};
  const SgdOptions options{.rate = 0.5, .momentum = 0.5, .weight_decay = 2};
  StepBuffers<double> buffers{value.view(), gradient.view(), decayed, 0.25, false};
  sgd_step(options, buffers, velocity.view());  // g = 1, and 1 + 2
  EXPECT_EQ(value.data, (std::vector<double>{0.5, -0.5}));
  sgd_step(options, buffers, velocity.view());  // v = 0.5 + 1, and 1.5 + 1 - 1
  EXPECT_EQ(value.data, (std::vector<double>{-0.25, -1.25}));
  buffers.clear_gradients = true;
  sgd_step({.rate = 1, .momentum = 0.5, .nesterov = true}, buffers, velocity.view());
  // v = 0.75 + 1; value -= 1 + 0.5 v
  EXPECT_EQ(value.data, (std::vector<double>{-0.25 - 1.875, -1.25 - 1.875}));
  EXPECT_EQ(gradient.data, (std::vector<double>{0, 0}));
}

// In the first step m / (1 - beta1) = g and v / (1 - beta2) = g^2: the value moves by rate g / (|g| + eps).
TEST(ReferenceOptimizer, AdamsFirstStepByHand) {
  const ElementRange decayed[] = {{0, 1}};
  for (const bool decoupled : {false, true}) {
    Array<1> value({2}, {10, 10}), gradient({2}, {3, 3}), m({2}, 0.0), v({2}, 0.0);
    const AdamOptions options{.rate = 0.5, .eps = 1, .weight_decay = 0.1, .decoupled = decoupled};
    adam_step(options, {value.view(), gradient.view(), decayed}, {m.view(), v.view(), 1});
    const double first = decoupled ? 10 - 0.5 * 0.1 * 10 - 0.5 * 3 / 4 : 10 - 0.5 * 4 / 5;
    EXPECT_NEAR(value.data[0], first, 1e-14);
    EXPECT_NEAR(value.data[1], 10 - 0.5 * 3 / 4, 1e-14);
  }
}

TEST(ReferenceOptimizer, NormByHand) {
  const Array<1> g({2}, {3, -4});
  EXPECT_EQ(gradient_norm(g.view()), 5);
}

}  // namespace
}  // namespace heed::kernels::reference
