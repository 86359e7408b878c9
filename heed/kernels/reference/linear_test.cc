// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

using heed::testing::seeded;

constexpr Activation kAll[] = {Activation::none, Activation::relu, Activation::gelu,   Activation::gelu_tanh,
                               Activation::silu, Activation::tanh, Activation::sigmoid};

// x = (1, 2; 3, -1), w = (1, 0; 2, 1; 0, -1): x w^T = (1, 4, -2; 3, 5, 1). With b = (1, 2, -1), z = (2, 6, -3; 4, 7,
// 0).
TEST(ReferenceLinear, IsTheFormula) {
  const Array<2> x({2, 2}, {1, 2, 3, -1}), w({3, 2}, {1, 0, 2, 1, 0, -1});
  const Array<1> b({3}, {1, 2, -1});
  Array<2> y({2, 3}, kNaN), z({2, 3}, kNaN);
  linear_forward({x.view(), w.view(), b.view()}, {y.view(), z.view()}, Activation::relu);
  expect_near(z.data, {2, 6, -3, 4, 7, 0});
  expect_near(y.data, {2, 6, 0, 4, 7, 0});
  linear_forward({x.view(), w.view(), {}}, {.y = y.view()}, Activation::none);
  expect_near(y.data, {1, 4, -2, 3, 5, 1});
}

// With dy = (1, 1, 1; 1, 1, 1), relu lets through dz = (1, 1, 0; 1, 1, 0), and each gradient begins at 10.
TEST(ReferenceLinear, AddsItsGradients) {
  const Array<2> x({2, 2}, {1, 2, 3, -1}), w({3, 2}, {1, 0, 2, 1, 0, -1}), dy({2, 3}, 1.0);
  const Array<2> z({2, 3}, {2, 6, -3, 4, 7, 0});
  Array<2> dx({2, 2}, 10.0), dw({3, 2}, 10.0);
  Array<1> db({3}, 10.0);
  linear_backward({x.view(), w.view(), {}}, {dy.view(), z.view(), dx.view(), dw.view(), db.view()}, Activation::relu);
  expect_near(dx.data, {13, 11, 13, 11});
  expect_near(dw.data, {14, 11, 14, 11, 10, 10});
  expect_near(db.data, {12, 12, 10});
}

struct Draw {
  Activation activation;
  Array<2> x, w, dy;
  Array<1> b;

  Draw(Activation act, Rng& rng)
      : activation(act), x(shape(rng)), w({shape(rng)[0], x.shape[1]}), dy({x.shape[0], w.shape[0]}), b({w.shape[0]}) {
    for (auto* all : {&x.data, &w.data, &dy.data, &b.data}) {
      for (double& value : *all) value = double{rng.normal()};
    }
  }
  static Dims<2> shape(Rng& rng) {
    return {1 + static_cast<int64_t>(rng.below(5)), 1 + static_cast<int64_t>(rng.below(6))};
  }

  LinearInputs inputs() const { return {x.view(), w.view(), b.view()}; }
  Array<2> preactivation() const {
    Array<2> y(dy.shape), z(dy.shape);
    linear_forward(inputs(), {y.view(), z.view()}, activation);
    return z;
  }
  // sum(dy * y), whose gradients are those that backward gives for dy.
  double functional() const {
    Array<2> y(dy.shape);
    linear_forward(inputs(), {.y = y.view()}, activation);
    double sum = 0;
    for (size_t i = 0; i < y.data.size(); ++i) sum += dy.data[i] * y.data[i];
    return sum;
  }
  bool near_a_kink() const {
    const Array<2> z = preactivation();
    return activation == Activation::relu &&
           std::any_of(z.data.begin(), z.data.end(), [](double value) { return std::abs(value) < 1e-3; });
  }
};

// The largest error over the largest gradient, against (f(x + h) - f(x - h)) / 2h.
double worst_error(Draw& draw, std::vector<double>& argument, const std::vector<double>& gradient) {
  constexpr double h = 1e-5;
  double worst = 0, largest = 0;
  for (size_t i = 0; i < argument.size(); ++i) {
    const double value = argument[i];
    argument[i] = value + h;
    const double above = draw.functional();
    argument[i] = value - h;
    const double below = draw.functional();
    argument[i] = value;
    worst = std::max(worst, std::abs((above - below) / (2 * h) - gradient[i]));
    largest = std::max(largest, std::abs(gradient[i]));
  }
  return largest == 0 ? worst : worst / largest;
}

TEST(ReferenceLinear, GradientsAreThoseOfForward) {
  for (const Activation activation : kAll) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(std::string(name_of(activation)) + ", seed " + std::to_string(seed));
      Rng rng(seeded(seed));
      Draw draw(activation, rng);
      if (draw.near_a_kink()) continue;
      const Array<2> z = draw.preactivation();
      Array<2> dx(draw.x.shape), dw(draw.w.shape);
      Array<1> db(draw.b.shape);
      linear_backward(draw.inputs(), {draw.dy.view(), z.view(), dx.view(), dw.view(), db.view()}, activation);
      EXPECT_LE(worst_error(draw, draw.x.data, dx.data), 1e-7) << "dx";
      EXPECT_LE(worst_error(draw, draw.w.data, dw.data), 1e-7) << "dw";
      EXPECT_LE(worst_error(draw, draw.b.data, db.data), 1e-7) << "db";
    }
  }
}

}  // namespace
}  // namespace heed::kernels::reference
