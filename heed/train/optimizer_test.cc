// SPDX-License-Identifier: Apache-2.0
#include "heed/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heed/base/testing.h"

namespace heed::train {
namespace {

using heed::testing::error_of;

struct Net {
  Parameter matrix{Tensor::of({2, 2}, std::vector<float>{1, -2, 3, 4})};
  Parameter bias{.value = Tensor::of({2}, std::vector<float>{5, 6}), .decay = false};
  void visit(auto&& each) { each("matrix", matrix), each("bias", bias); }
};

// Gradients of 1 for the matrix and of -1 for the bias.
void set_gradients(const Net& net) {
  net.matrix.gradient.fill(1);
  net.bias.gradient.fill(-1);
}

// A step rounds its few terms, all smaller than the value, and the value once each.
void expect_near(float got, double expected) { EXPECT_NEAR(got, expected, 4 * 0x1p-24 * std::abs(expected)); }

TEST(Sgd, FollowsItsEquation) {
  Net net;
  ParameterStore parameters(net);
  Sgd optimizer(parameters, {.momentum = 0.5, .weight_decay = 0.1});
  Parallel parallel(1);
  set_gradients(net);
  optimizer.step({.rate = 0.1, .gradient_scale = 0.5, .step = 1}, parallel);
  // g = 0.5 + 0.1 value for the matrix, -0.5 for the bias; value -= 0.1 g
  expect_near(net.matrix.value.data<float>()[0], 1 - 0.1 * 0.6);
  expect_near(net.matrix.value.data<float>()[3], 4 - 0.1 * 0.9);
  expect_near(net.bias.value.data<float>()[0], 5 + 0.1 * 0.5);
  EXPECT_EQ(net.bias.gradient.data<float>()[0], 0) << "used up";
  set_gradients(net);
  optimizer.step({.rate = 0.1, .gradient_scale = 0.5, .step = 2}, parallel);
  expect_near(net.bias.value.data<float>()[0], 5.05 + 0.1 * (0.5 * 0.5 + 0.5));  // with momentum
}

TEST(AdamW, MovesByTheRateAtFirstAndDecaysMatricesAlone) {
  Net net;
  ParameterStore parameters(net);
  AdamW optimizer(parameters, {.weight_decay = 0.1});
  Parallel parallel(1);
  set_gradients(net);
  optimizer.step({.rate = 0.01, .step = 1}, parallel);
  expect_near(net.matrix.value.data<float>()[0], 1 * (1 - 0.01 * 0.1) - 0.01);
  expect_near(net.bias.value.data<float>()[0], 5 + 0.01);
  ASSERT_EQ(optimizer.buffers().size(), 2u);
  EXPECT_EQ(optimizer.buffers()[0].name, "m");
}

TEST(Optimizer, SaysWhatItCannotTrain) {
  Net net;
  ParameterStore parameters(net, DType::f64);
  EXPECT_EQ(error_of([&] { AdamW optimizer(parameters); }), "optimizer: parameters in f64 came, expected f32");
}

}  // namespace
}  // namespace heed::train
