// SPDX-License-Identifier: Apache-2.0
// The rows `lstm` and `gru` of heed bench layers: batches, as in training, and a single sequence, where a step is bound
// by reading the recurrent weights.
#include <memory>

#include "bench/layers.h"
#include "heed/base/rng.h"
#include "heed/kernels/recurrent.h"

namespace heed::bench {

namespace {

struct Shape {
  kernels::Cell cell;
  int64_t T, B, I, H;
  int64_t rows() const { return kernels::gates_of(cell) * H; }
  double flops() const { return 2.0 * static_cast<double>(T * B) * static_cast<double>((I + H) * rows()); }
};

struct Sequences {
  Shape n;
  std::vector<float> x, w_ih, w_hh, b_ih, b_hh, h, saved, dx, dw_ih, dw_hh, db_ih, db_hh;
  Workspace workspace;

  explicit Sequences(const Shape& shape) : n(shape) {
    Rng rng(1);
    const auto normals = [&](int64_t count, float size) {
      std::vector<float> drawn(static_cast<size_t>(count));
      for (float& value : drawn) value = size * rng.normal();
      return drawn;
    };
    x = normals(n.T * n.B * n.I, 1), w_ih = normals(n.rows() * n.I, 0.04f), w_hh = normals(n.rows() * n.H, 0.04f);
    b_ih = normals(n.rows(), 0.1f), b_hh = b_ih;
    h = normals(n.T * n.B * n.H, 1), saved.resize(static_cast<size_t>(n.T * n.B * kernels::saved_width(n.cell, n.H)));
    dx = x, dw_ih = w_ih, dw_hh = w_hh, db_ih = b_ih, db_hh = b_hh;
    workspace.reserve(kernels::recurrent_forward_bytes(inputs(), {.cell = n.cell}));
    workspace.reserve(kernels::recurrent_backward_bytes(inputs(), {.cell = n.cell}));
  }
  kernels::RecurrentInputs<float> inputs() const {
    return {.x = {x.data(), {n.B, n.T, n.I}},
            .w_ih = {w_ih.data(), {n.rows(), n.I}},
            .w_hh = {w_hh.data(), {n.rows(), n.H}},
            .b_ih = {b_ih.data(), {n.rows()}},
            .b_hh = {b_hh.data(), {n.rows()}}};
  }
  View<float, 2> kept() { return {saved.data(), {n.B * n.T, kernels::saved_width(n.cell, n.H)}}; }
  void forward(Parallel& parallel) {
    recurrent_forward(inputs(), {.h = {h.data(), {n.B, n.T, n.H}}, .saved = kept()}, {.cell = n.cell}, workspace,
                      parallel);
  }
  void backward(Parallel& parallel) {
    recurrent_backward(inputs(),
                       {.saved = kept(),
                        .d_h = {h.data(), {n.B, n.T, n.H}},
                        .dx = {dx.data(), {n.B, n.T, n.I}},
                        .dw_ih = {dw_ih.data(), {n.rows(), n.I}},
                        .dw_hh = {dw_hh.data(), {n.rows(), n.H}},
                        .db_ih = {db_ih.data(), {n.rows()}},
                        .db_hh = {db_hh.data(), {n.rows()}}},
                       {.cell = n.cell}, workspace, parallel);
  }
};

LayerRow row_of(const Shape& n, bool both) {
  return {name_of(n.cell),
          both ? "forward_backward" : "forward",
          {{"T", n.T}, {"B", n.B}, {"I", n.I}, {"H", n.H}},
          "f32",
          [=](Parallel& parallel) {
            const auto problem = std::make_shared<Sequences>(n);
            LayerProblem made{.run =
                                  [problem, both, &parallel] {
                                    problem->forward(parallel);
                                    if (both) problem->backward(parallel);
                                  },
                              .flops = n.flops() * (both ? 3 : 1)};
            // A single sequence cannot do without reading w_hh at every step.
            for (int64_t t = 0; n.B == 1 && t < n.T; ++t) made.read.push_back(std::as_bytes(std::span(problem->w_hh)));
            return made;
          }};
}

}  // namespace

std::vector<LayerRow> recurrent_rows() {
  std::vector<LayerRow> rows;
  for (const kernels::Cell cell : {kernels::Cell::lstm, kernels::Cell::gru}) {
    for (const bool both : {false, true}) rows.push_back(row_of({cell, 64, 32, 512, 512}, both));
  }
  rows.push_back(row_of({kernels::Cell::lstm, 64, 1, 512, 512}, false));
  return rows;
}

}  // namespace heed::bench
