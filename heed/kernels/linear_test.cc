// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "heed/base/testing.h"
#include "heed/kernels/reference/linear.h"
#include "heed/kernels/testing.h"

namespace heed::kernels {
namespace {

using namespace testing;
using heed::testing::seeded;

constexpr Activation kAll[] = {Activation::none, Activation::relu, Activation::gelu,   Activation::gelu_tanh,
                               Activation::silu, Activation::tanh, Activation::sigmoid};

// A layer with its numbers; gradients begin at numbers other than zero. w and dw may be stored as [I,O].
struct Layer {
  int64_t M, I, O;
  bool transposed;
  Rows x, w, b, dy, dx, dw, db;

  Layer(int64_t rows, int64_t in, int64_t out, Rng& rng)
      : M(rows),
        I(in),
        O(out),
        transposed(rng.below(2) == 1),
        x(Rows::normal(M, I, rng)),
        w(Rows::normal(transposed ? I : O, transposed ? O : I, rng, 1 / std::sqrt(static_cast<float>(I + 1)))),
        b(Rows::normal(1, O, rng)),
        dy(Rows::normal(M, O, rng)),
        dx(Rows::normal(M, I, rng)),
        dw(Rows::normal(w.rows(), w.width(), rng)),
        db(Rows::normal(1, O, rng)) {}

  template <class T>
  View<T, 2> as_stored(const View<T, 2>& view) const {
    return transposed ? view.transposed(0, 1) : view;
  }
  LinearInputs inputs() const { return {x.view(), as_stored(w.view()), {b.view().data(), {O}}}; }
  LinearGradients gradients(const View<const float, 2>& z) {
    return {dy.view(), z, dx.view(), as_stored(dw.view()), {db.view().data(), {O}}};
  }
};

// The same in double; b and gradients too.
struct Twin {
  const Layer& of;
  std::vector<double> x, w, b, dx, dw, db;

  explicit Twin(const Layer& layer)
      : of(layer),
        x(layer.x.doubles()),
        w(layer.w.doubles()),
        b(layer.b.doubles()),
        dx(layer.dx.doubles()),
        dw(layer.dw.doubles()),
        db(layer.db.doubles()) {}

  reference::LinearInputs inputs() {
    return {matrix(x, of.M, of.I), of.as_stored(matrix(w, of.w.rows(), of.w.width())), row(b)};
  }
  reference::LinearGradients gradients(std::vector<double>& dz) {
    return {matrix(dz, of.M, of.O),
            {},
            matrix(dx, of.M, of.I),
            of.as_stored(matrix(dw, of.w.rows(), of.w.width())),
            row(db)};
  }
  // Everything by its size: what a sum's rounding errors are measured by.
  void take_sizes() {
    for (auto* all : {&x, &w, &b, &dx, &dw, &db}) {
      for (double& value : *all) value = std::abs(value);
    }
  }
};

// n additions and products change each term by a factor within (1 + u)^(+-(n + 5)).
std::vector<double> rounded(std::vector<double> sizes, int64_t n) {
  for (double& size : sizes) size *= std::expm1(static_cast<double>(n + 5) * kUnit);
  return sizes;
}

// What activation_test.cc vouches for, on whole rows.
Rows activated(Activation activation, const Rows& z) {
  Rows y(z.rows(), z.width());
  for (int64_t r = 0; r < z.rows(); ++r) {
    const auto width = static_cast<size_t>(z.width());
    activate(activation, {z.view().at(r), width}, {y.view().at(r), width});
  }
  return y;
}
Rows sloped(Activation activation, const Rows& z, const Rows& dy) {
  Rows dz(z.rows(), z.width());
  for (int64_t r = 0; r < z.rows(); ++r) {
    const auto width = static_cast<size_t>(z.width());
    activation_slope(activation, {z.view().at(r), width}, {dy.view().at(r), width}, {dz.view().at(r), width});
  }
  return dz;
}

Workspace exact_workspace(const Layer& layer, Activation activation) {
  return Workspace(linear_backward_bytes(layer.M, layer.O, activation));
}

TEST(Linear, ForwardIsNearTheTwin) {
  for_draws(60, [](Rng& rng) {
    const Layer layer(draw_width(rng), draw_width(rng), draw_width(rng), rng);
    const Activation activation = kAll[rng.below(std::size(kAll))];
    const bool packed = rng.below(2), biased = rng.below(2);
    SCOPED_TRACE(std::to_string(layer.M) + " rows, " + std::to_string(layer.I) + " to " + std::to_string(layer.O) +
                 " " + name_of(activation) + (packed ? " packed" : ""));
    Twin twin(layer);
    std::vector<double> z64(static_cast<size_t>(layer.M * layer.O)), sizes = z64, unused = z64;
    const auto run_twin = [&](std::vector<double>& z) {
      reference::LinearInputs in = twin.inputs();
      if (!biased) in.b = {};
      reference::linear_forward(in, {matrix(unused, layer.M, layer.O), matrix(z, layer.M, layer.O)}, activation);
    };
    run_twin(z64);
    twin.take_sizes();
    run_twin(sizes);

    for_targets([&] {
      Parallel parallel(2);
      const PackedWeight panels(layer.inputs().w, DType::f32, parallel);
      LinearInputs in = layer.inputs();
      if (packed) in.w = panels;
      if (!biased) in.b = {};
      Rows z(layer.M, layer.O, 3), y(layer.M, layer.O, 1), alone(layer.M, layer.O);
      linear_forward(in, {.y = y.view(), .z = z.view()}, activation, parallel);
      linear_forward(in, {.y = alone.view()}, activation, parallel);
      EXPECT_TRUE(within(z.floats(), z64, rounded(sizes, layer.I)));
      EXPECT_TRUE(same_bits(y.floats(), activated(activation, z).floats()));
      EXPECT_TRUE(same_bits(alone.floats(), y.floats()));
      EXPECT_TRUE(z.guards_are_whole() && y.guards_are_whole());
    });
  });
}

TEST(Linear, BackwardIsNearTheTwin) {
  for_draws(60, [](Rng& rng) {
    const Layer layer(draw_width(rng), draw_width(rng), draw_width(rng), rng);
    const Activation activation = kAll[rng.below(std::size(kAll))];
    SCOPED_TRACE(std::to_string(layer.M) + " rows, " + std::to_string(layer.I) + " to " + std::to_string(layer.O) +
                 " " + name_of(activation));
    const Rows z = Rows::normal(layer.M, layer.O, rng);
    for_targets([&] {
      std::vector<double> dz = sloped(activation, z, layer.dy).doubles();
      Twin twin(layer), sizes(layer);
      reference::linear_backward(twin.inputs(), twin.gradients(dz), Activation::none);
      sizes.take_sizes();
      for (double& value : dz) value = std::abs(value);
      reference::linear_backward(sizes.inputs(), sizes.gradients(dz), Activation::none);

      Layer got = layer;
      Parallel parallel(2);
      Workspace workspace = exact_workspace(layer, activation);
      linear_backward(got.inputs(), got.gradients(z.view()), activation, workspace, parallel);
      EXPECT_TRUE(within(got.dx.floats(), twin.dx, rounded(sizes.dx, layer.O))) << "dx";
      EXPECT_TRUE(within(got.dw.floats(), twin.dw, rounded(sizes.dw, layer.M))) << "dw";
      EXPECT_TRUE(within(got.db.floats(), twin.db, rounded(sizes.db, layer.M))) << "db";
      EXPECT_TRUE(got.dx.guards_are_whole() && got.dw.guards_are_whole());
    });
  });
}

TEST(Linear, MakesOnlyTheGradientsThatAreWanted) {
  Rng rng(seeded(3));
  const Layer layer(70, 20, 30, rng);
  const Rows z = Rows::normal(layer.M, layer.O, rng);
  Parallel parallel(2);
  for (const Activation activation : {Activation::none, Activation::gelu}) {
    Workspace workspace = exact_workspace(layer, activation);
    Layer all = layer;
    linear_backward(all.inputs(), all.gradients(z.view()), activation, workspace, parallel);
    for (int wanted = 0; wanted < 8; ++wanted) {
      Layer some = layer;
      LinearGradients grad = some.gradients(z.view());
      if (!(wanted & 1)) grad.dx = {};
      if (!(wanted & 2)) grad.dw = {};
      if (!(wanted & 4)) grad.db = {};
      linear_backward(some.inputs(), grad, activation, workspace, parallel);
      EXPECT_TRUE(same_bits(some.dx.floats(), (wanted & 1 ? all : layer).dx.floats())) << wanted;
      EXPECT_TRUE(same_bits(some.dw.floats(), (wanted & 2 ? all : layer).dw.floats())) << wanted;
      EXPECT_TRUE(same_bits(some.db.floats(), (wanted & 4 ? all : layer).db.floats())) << wanted;
    }
  }
}

TEST(Linear, HasTheSameBitsOnAnyNumberOfThreads) {
  Rng rng(seeded(4));
  for (const Dims<3>& shape : {Dims<3>{700, 300, 1100}, Dims<3>{33, 700, 200}, Dims<3>{1, 1500, 3000}}) {
    const Layer layer(shape[0], shape[1], shape[2], rng);
    expect_same_on_threads([&](Parallel& parallel) {
      Layer run = layer;
      Rows z(layer.M, layer.O), y(layer.M, layer.O);
      linear_forward(run.inputs(), {y.view(), z.view()}, Activation::silu, parallel);
      Workspace workspace = exact_workspace(layer, Activation::silu);
      linear_backward(run.inputs(), run.gradients(z.view()), Activation::silu, workspace, parallel);
      std::vector<float> all = y.floats();
      for (const Rows* more : {&z, &run.dx, &run.dw, &run.db}) {
        const std::vector<float> floats = more->floats();
        all.insert(all.end(), floats.begin(), floats.end());
      }
      return all;
    });
  }
}

}  // namespace
}  // namespace heed::kernels
