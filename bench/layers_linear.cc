// SPDX-License-Identifier: Apache-2.0
// The rows `linear` of heed bench layers: a few rows over packed weights, as in decoding, and many, as in training.
#include <memory>

#include "bench/layers.h"
#include "heed/base/rng.h"
#include "heed/kernels/linear.h"

namespace heed::bench {

namespace {

using kernels::Activation;

std::vector<float> normals(int64_t count, Rng& rng) {
  std::vector<float> drawn(static_cast<size_t>(count));
  for (float& x : drawn) x = rng.normal();
  return drawn;
}

struct Shape {
  int64_t M, I, O;
  double flops() const { return 2.0 * static_cast<double>(M) * static_cast<double>(I) * static_cast<double>(O); }
};

// Weights that are read in turn: one stays in the caches, many together do not.
struct Projected {
  Shape n;
  std::vector<float> x, b, y;
  std::vector<kernels::PackedWeight> weights;

  Projected(const Shape& shape, DType dtype, int64_t matrices, Parallel& parallel) : n(shape) {
    Rng rng(1);
    x = normals(n.M * n.I, rng), b = normals(n.O, rng), y.resize(static_cast<size_t>(n.M * n.O));
    const std::vector<float> w = normals(n.O * n.I, rng);
    for (int64_t i = 0; i < matrices; ++i) {
      weights.emplace_back(View<const float, 2>(w.data(), {n.O, n.I}), dtype, parallel);
    }
  }
  void forward(Parallel& parallel) {
    for (const kernels::PackedWeight& w : weights) {
      linear_forward({{x.data(), {n.M, n.I}}, w, {b.data(), {n.O}}}, {.y = {y.data(), {n.M, n.O}}}, Activation::none,
                     parallel);
    }
  }
};

LayerRow packed_row(const Shape& n, DType dtype, int64_t matrices, bool bound_by_reading) {
  const std::string where = matrices > 1 ? ", " + std::to_string(matrices) + " in turn" : "";
  return {"linear",
          "forward",
          {{"M", n.M}, {"I", n.I}, {"O", n.O}},
          std::string(name_of(dtype)) + " packed" + where,
          [=](Parallel& parallel) {
            const auto problem = std::make_shared<Projected>(n, dtype, matrices, parallel);
            LayerProblem made{.run = [problem, &parallel] { problem->forward(parallel); },
                              .flops = n.flops() * static_cast<double>(matrices),
                              .calls = matrices};
            for (const kernels::PackedWeight& w : problem->weights) {
              if (bound_by_reading) made.read.push_back(w.panels());
            }
            return made;
          }};
}

// As a training step runs it: weights as they are learned.
struct Learned {
  Shape n;
  std::vector<float> x, w, b, y, dy, dx, dw, db;
  Workspace workspace;

  explicit Learned(const Shape& shape) : n(shape) {
    Rng rng(1);
    x = normals(n.M * n.I, rng), w = normals(n.O * n.I, rng), b = normals(n.O, rng), dy = normals(n.M * n.O, rng);
    y = dy, dx = x, dw = w, db = b;
    workspace.reserve(kernels::linear_backward_bytes(n.M, n.O, Activation::none));
  }
  kernels::LinearInputs inputs() const {
    return {{x.data(), {n.M, n.I}}, View<const float, 2>(w.data(), {n.O, n.I}), {b.data(), {n.O}}};
  }
  void forward(Parallel& parallel) {
    linear_forward(inputs(), {.y = {y.data(), {n.M, n.O}}}, Activation::none, parallel);
  }
  void backward(Parallel& parallel) {
    linear_backward(inputs(),
                    {.dy = {dy.data(), {n.M, n.O}},
                     .dx = {dx.data(), {n.M, n.I}},
                     .dw = {dw.data(), {n.O, n.I}},
                     .db = {db.data(), {n.O}}},
                    Activation::none, workspace, parallel);
  }
};

LayerRow learned_row(const Shape& n, bool both) {
  return {"linear",
          both ? "forward_backward" : "forward",
          {{"M", n.M}, {"I", n.I}, {"O", n.O}},
          "f32",
          [=](Parallel& parallel) {
            const auto problem = std::make_shared<Learned>(n);
            return LayerProblem{.run =
                                    [problem, both, &parallel] {
                                      problem->forward(parallel);
                                      if (both) problem->backward(parallel);
                                    },
                                .flops = n.flops() * (both ? 3 : 1)};
          }};
}

}  // namespace

std::vector<LayerRow> linear_rows() {
  constexpr int64_t kMany = 32;  // of 4 MiB each: more than any cache of these machines
  const Dims<2> wide{512, 2048}, narrow{2048, 512};
  std::vector<LayerRow> rows;
  for (const int64_t M : {1, 8}) {
    for (const Dims<2>& n : {wide, narrow}) {
      for (const int64_t matrices : {int64_t{1}, kMany})
        rows.push_back(packed_row({M, n[0], n[1]}, DType::f32, matrices, true));
    }
    for (const DType dtype : {DType::bf16, DType::f16})
      rows.push_back(packed_row({M, wide[0], wide[1]}, dtype, 1, true));
  }
  for (const Dims<2>& n : {wide, narrow}) rows.push_back(packed_row({64, n[0], n[1]}, DType::f32, 1, false));
  rows.push_back(learned_row({64, wide[0], wide[1]}, false));
  for (const Dims<2>& n : {wide, narrow}) {
    for (const bool both : {false, true}) rows.push_back(learned_row({1024, n[0], n[1]}, both));
  }
  return rows;
}

}  // namespace heed::bench
