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

TEST(Sgd, FollowsItsEquation) {
  Net net;
  ParameterStore parameters(net);
  Sgd optimizer(parameters, {.momentum = 0.5, .weight_decay = 0.1});
  Parallel parallel(1);
  set_gradients(net);
  optimizer.step({.rate = 0.1, .gradient_scale = 0.5, .step = 1}, parallel);
  // g = 0.5 + 0.1 value for the matrix, -0.5 for the bias; value -= 0.1 g
  EXPECT_NEAR(net.matrix.value.data<float>()[0], 1 - 0.1 * 0.6, 1e-6);
  EXPECT_NEAR(net.matrix.value.data<float>()[3], 4 - 0.1 * 0.9, 1e-6);
  EXPECT_NEAR(net.bias.value.data<float>()[0], 5 + 0.1 * 0.5, 1e-6);
  EXPECT_EQ(net.bias.gradient.data<float>()[0], 0) << "used up";
  set_gradients(net);
  optimizer.step({.rate = 0.1, .gradient_scale = 0.5, .step = 2}, parallel);
  EXPECT_NEAR(net.bias.value.data<float>()[0], 5.05 + 0.1 * (0.5 * 0.5 + 0.5), 1e-6) << "with momentum";
}

TEST(AdamW, MovesByTheRateAtFirstAndDecaysMatricesAlone) {
  Net net;
  ParameterStore parameters(net);
  AdamW optimizer(parameters, {.weight_decay = 0.1});
  Parallel parallel(1);
  set_gradients(net);
  optimizer.step({.rate = 0.01, .step = 1}, parallel);
  EXPECT_NEAR(net.matrix.value.data<float>()[0], 1 * (1 - 0.01 * 0.1) - 0.01, 1e-6);
  EXPECT_NEAR(net.bias.value.data<float>()[0], 5 + 0.01, 1e-6);
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
