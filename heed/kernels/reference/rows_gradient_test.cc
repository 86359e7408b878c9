// SPDX-License-Identifier: Apache-2.0
// Every gradient of the twins of the kernels over rows, against central differences of their forward pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/base/rng.h"
#include "heed/base/testing.h"
#include "heed/kernels/reference/activation.h"
#include "heed/kernels/reference/dropout.h"
#include "heed/kernels/reference/elementwise.h"
#include "heed/kernels/reference/embedding.h"
#include "heed/kernels/reference/loss.h"
#include "heed/kernels/reference/norm.h"
#include "heed/kernels/reference/rope.h"
#include "heed/kernels/reference/softmax.h"
#include "heed/kernels/reference/testing.h"

namespace heed::kernels::reference {
namespace {

using heed::testing::seeded;

template <size_t Rank>
Array<Rank> normal(const Dims<Rank>& shape, Rng& rng) {
  Array<Rank> drawn(shape);
  for (double& x : drawn.data) x = double{rng.normal()};
  return drawn;
}

template <size_t Rank>
double dot(const Array<Rank>& a, const Array<Rank>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += a.data[i] * b.data[i];
  return sum;
}

// The gradient of functional() in x, against differences of fourth order: truncation leaves some h^4 = 1e-12, rounding
// about 1e-16 / h = 1e-13, both times the size of the functional.
void expect_gradient(const char* name, std::vector<double>& x, const std::vector<double>& gradient,
                     const auto& functional) {
  const double h = 1e-3;
  double error = 0, largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    const auto at = [&](double step) {
      x[i] = middle + step;
      return functional();
    };
    const double difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    x[i] = middle;
    error = std::max(error, std::abs(difference - gradient[i]));
    largest = std::max(largest, std::abs(gradient[i]));
  }
  EXPECT_LE(error, 1e-7 * largest) << name;
}

// body(rng) for a number of draws.
void for_seeds(const auto& body) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seeded(seed));
    body(rng);
  }
}
int64_t between(int64_t low, int64_t high, Rng& rng) { return low + static_cast<int64_t>(rng.below(high - low + 1)); }

// Gradients begin at 1, which is taken away again: backward adds.
template <size_t Rank>
Array<Rank> added(const Dims<Rank>& shape, const auto& backward) {
  Array<Rank> gradient(shape, 1.0);
  backward(gradient.view());
  for (double& x : gradient.data) x -= 1;
  return gradient;
}

TEST(ReferenceRowGradients, Activation) {
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                      Activation::silu, Activation::tanh, Activation::sigmoid}) {
    for_seeds([&](Rng& rng) {
      Array<2> x = normal<2>({3, 5}, rng);
      const Array<2> dy = normal<2>({3, 5}, rng);
      for (double& value : x.data) value += std::copysign(0.01, value);  // away from the kink
      const auto gradient =
          added<2>({3, 5}, [&](View<double, 2> dx) { activation_backward(activation, x.view(), dy.view(), dx); });
      expect_gradient(name_of(activation), x.data, gradient.data, [&] {
        Array<2> y(x.shape);
        activation_forward(activation, x.view(), y.view());
        return dot(y, dy);
      });
    });
  }
}

TEST(ReferenceRowGradients, Norm) {
  for (const bool centred : {false, true}) {
    for_seeds([&](Rng& rng) {
      const Dims<2> shape{between(1, 4, rng), between(2, 7, rng)};
      Array<2> x = normal(shape, rng);
      const Array<2> dy = normal(shape, rng);
      Array<1> weight = normal<1>({shape[1]}, rng), bias = normal<1>({shape[1]}, rng);
      const bool with_weight = rng.below(3) > 0;
      const auto inputs = [&] {
        NormInputs<double> in{.x = x.view(), .eps = 0.1};
        if (with_weight) in.weight = weight.view();
        if (centred) in.bias = bias.view();
        return in;
      };
      Array<1> mean({shape[0]}), rstd({shape[0]});
      const auto run = [&] {
        Array<2> y(shape);
        if (centred) {
          layer_norm_forward(inputs(), {y.view(), mean.view(), rstd.view()});
        } else {
          rms_norm_forward(inputs(), {.y = y.view(), .rstd = rstd.view()});
        }
        return dot(y, dy);
      };
      const auto back = [&](const auto& want) {
        run();
        NormGradients<double> to{.rstd = rstd.view(), .dy = dy.view()};
        if (centred) to.mean = mean.view();
        want(to);
        (centred ? layer_norm_backward : rms_norm_backward)(inputs(), to);
      };
      const auto dx = added(shape, [&](View<double, 2> to) { back([&](auto& want) { want.dx = to; }); });
      const auto dweight =
          added(weight.shape, [&](View<double, 1> to) { back([&](auto& want) { want.dweight = to; }); });
      expect_gradient("x", x.data, dx.data, run);
      if (with_weight) expect_gradient("weight", weight.data, dweight.data, run);
      if (!centred) return;
      const auto dbias = added(bias.shape, [&](View<double, 1> to) { back([&](auto& want) { want.dbias = to; }); });
      expect_gradient("bias", bias.data, dbias.data, run);
    });
  }
}

TEST(ReferenceRowGradients, Softmax) {
  for (const bool log : {false, true}) {
    for_seeds([&](Rng& rng) {
      const Dims<2> shape{between(1, 3, rng), between(2, 7, rng)};
      Array<2> x = normal(shape, rng), y(shape);
      const Array<2> dy = normal(shape, rng);
      const auto run = [&] {
        (log ? log_softmax_forward : softmax_forward)(x.view(), y.view());
        return dot(y, dy);
      };
      run();
      const auto dx = added(
          shape, [&](View<double, 2> to) { (log ? log_softmax_backward : softmax_backward)(y.view(), dy.view(), to); });
      expect_gradient(log ? "log-softmax" : "softmax", x.data, dx.data, run);
    });
  }
}

TEST(ReferenceRowGradients, Dropout) {
  for_seeds([&](Rng& rng) {
    const ElementDropout dropout{0.4f, rng.next_u64(), 1};
    Array<1> x = normal<1>({20}, rng), residual = normal<1>({20}, rng);
    const Array<1> dy = normal<1>({20}, rng);
    const auto dx = added<1>({20}, [&](View<double, 1> to) { dropout_backward(dropout, dy.view(), to); });
    expect_gradient("x", x.data, dx.data, [&] {
      Array<1> y({20});
      dropout_forward(dropout, x.view(), residual.view(), y.view());
      return dot(y, dy);
    });
  });
}

TEST(ReferenceRowGradients, Elementwise) {
  for_seeds([&](Rng& rng) {
    Array<2> x = normal<2>({3, 4}, rng);
    Array<1> row = normal<1>({4}, rng);
    const Array<2> dy = normal<2>({3, 4}, rng);
    const double factor = double{rng.normal()};
    const auto run = [&] {
      Array<2> y({3, 4}), z({3, 4});
      add_row_forward(x.view(), row.view(), y.view());
      scale_forward(y.view(), factor, z.view());
      add_forward(z.view(), x.view(), y.view());
      return dot(y, dy);
    };
    Array<2> dx({3, 4}), dz({3, 4}), dy_inner({3, 4});
    Array<1> drow({4});
    add_backward(dy.view(), dz.view(), dx.view());
    scale_backward(dz.view(), factor, dy_inner.view());
    add_row_backward(dy_inner.view(), dx.view(), drow.view());
    expect_gradient("x", x.data, dx.data, run);
    expect_gradient("row", row.data, drow.data, run);
  });
}

TEST(ReferenceRowGradients, Embedding) {
  for_seeds([&](Rng& rng) {
    Array<2> table = normal<2>({5, 3}, rng);
    const Array<2> dy = normal<2>({8, 3}, rng);
    std::vector<int32_t> ids(8);
    for (int32_t& id : ids) id = static_cast<int32_t>(rng.below(5));
    const View<const int32_t, 1> view(ids.data(), {8});
    const auto dtable = added<2>({5, 3}, [&](View<double, 2> to) { embedding_backward(view, dy.view(), 1.7, to); });
    expect_gradient("table", table.data, dtable.data, [&] {
      Array<2> y({8, 3});
      embedding_forward(table.view(), view, 1.7, y.view());
      return dot(y, dy);
    });
  });
}

TEST(ReferenceRowGradients, Rope) {
  for_seeds([&](Rng& rng) {
    const Dims<4> shape{2, 2, 3, between(4, 9, rng)};
    const int64_t half = between(1, shape[3] / 2, rng);
    Array<2> cos({9, half}), sin({9, half});
    rope_tables(100, cos.view(), sin.view());
    const std::vector<int32_t> positions = {0, 3, 8, 5, 5, 1};
    RopeTables<double> tables{.cos = cos.view(), .sin = sin.view(), .offset = between(0, 6, rng)};
    if (rng.below(2)) tables.positions = {positions.data(), {2, 3}};
    if (rng.below(2)) tables.pairs = RopePairs::interleaved;
    Array4 x = normal(shape, rng);
    const Array4 dy = normal(shape, rng);
    const auto dx = added(shape, [&](View<double, 4> to) { rope_backward(tables, dy.view(), to); });
    expect_gradient("x", x.data, dx.data, [&] {
      Array4 y(shape);
      rope_forward(tables, x.view(), y.view());
      return dot(y, dy);
    });
  });
}

TEST(ReferenceRowGradients, CrossEntropy) {
  for_seeds([&](Rng& rng) {
    const Dims<2> shape{between(2, 5, rng), between(2, 6, rng)};
    Array<2> z = normal(shape, rng), stats({shape[0], 2});
    Array<1> losses({shape[0]});
    std::vector<int32_t> targets = {-100};
    while (std::ssize(targets) < shape[0]) targets.push_back(static_cast<int32_t>(rng.below(shape[1])));
    const auto inputs = [&, smoothing = rng.below(2) ? 0.3 : 0.0] {
      return CrossEntropyInputs<double>{z.view(), {targets.data(), {shape[0]}}, smoothing};
    };
    const auto run = [&] { return cross_entropy_forward(inputs(), {losses.view(), stats.view()}).mean(); };
    run();
    const double scale = 1 / static_cast<double>(shape[0] - 1);
    const auto dz =
        added(shape, [&](View<double, 2> to) { cross_entropy_backward(inputs(), stats.view(), scale, to); });
    expect_gradient("logits", z.data, dz.data, run);
  });
}

}  // namespace
}  // namespace heed::kernels::reference
