// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/linear.h"

#include <cassert>
#include <span>

#include "heed/kernels/product_tiles.h"

namespace heed::kernels {

namespace {

// Backward's first pass: dz = dy act'(z), and the sums of its columns over the rows of each tile.
constexpr int64_t kTileRows = 64, kTileColumns = 1024;

Tiling backward_tiling(int64_t rows, int64_t outputs) { return {rows, outputs, {kTileRows, kTileColumns}, 1}; }

struct LinearScratch {
  float* dz;    // [M,O], where there is an activation
  float* sums;  // [row tiles,O]
};

template <class T>
std::span<T> row_of(const View<T, 2>& view, int64_t row, const Tile& tile) {
  return {view.at(row, tile.column), static_cast<size_t>(tile.columns)};
}

void add_to(std::span<float> sum, std::span<const float> terms) {
  for (size_t n = 0; n < sum.size(); ++n) sum[n] += terms[n];
}

// db += the column sums of dz [M,O], over tiles of rows in their order.
void add_tile_sums(const View<const float, 2>& sums, const View<float, 1>& db) {
  for (int64_t t = 0; t < sums.shape(0); ++t) {
    for (int64_t n = 0; n < sums.shape(1); ++n) db(n) += sums(t, n);
  }
}

// dz = dy act'(z), and db in the same pass.
View<const float, 2> slope_and_sums(const LinearGradients& grad, Activation activation, const LinearScratch& scratch,
                                    Parallel& parallel) {
  const View<const float, 2>& dy = grad.dy;
  const bool slope = activation != Activation::none;
  if (!slope && !grad.db) return dy;
  const View<float, 2> made(scratch.dz, dy.shape());
  const View<const float, 2> dz = slope ? View<const float, 2>(made) : dy;
  const Tiling tiling = backward_tiling(dy.shape(0), dy.shape(1));
  const View<float, 2> sums(scratch.sums, {tiling.down(), dy.shape(1)});
  parallel.for_each(tiling.count(), [&](int64_t task, int) {
    const Tile tile = tiling[task];
    const std::span<float> sum = row_of(sums, task % tiling.down(), tile);
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
      if (slope) activation_slope(activation, row_of(grad.z, r, tile), row_of(dy, r, tile), row_of(made, r, tile));
      if (grad.db) add_to(sum, row_of(dz, r, tile));
    }
  });
  if (grad.db) add_tile_sums(sums, grad.db);
  return dz;
}

}  // namespace

void linear_forward(const LinearInputs& in, const LinearOutputs& out, Activation activation,
                    Parallel& parallel) noexcept {
  const View<float, 2>& z = out.z ? out.z : out.y;
  const bool finish = activation != Activation::none || out.z;
  const Projection call{in.x, in.w, z, {.b = in.b}};
  const Tiling tiling = project_tiling(call);
  parallel.for_each(tiling.count(), [&](int64_t task, int) {
    const Tile tile = tiling[task];
    project_tile(call, tile);
    for (int64_t r = tile.row; finish && r < tile.row + tile.rows; ++r) {
      activate(activation, row_of(z, r, tile), row_of(out.y, r, tile));
    }
  });
}

size_t linear_backward_bytes(int64_t rows, int64_t outputs, Activation activation) {
  const int64_t dz = activation == Activation::none ? 0 : rows;
  return static_cast<size_t>((dz + backward_tiling(rows, outputs).down()) * outputs) * sizeof(float);
}

void linear_backward(const LinearInputs& in, const LinearGradients& grad, Activation activation, Workspace& workspace,
                     Parallel& parallel) noexcept {
  const int64_t M = grad.dy.shape(0), O = grad.dy.shape(1);
  assert(workspace.bytes() >= linear_backward_bytes(M, O, activation));
  assert(activation == Activation::none || grad.z || M * O == 0);
  auto* floats = reinterpret_cast<float*>(workspace.data());
  const LinearScratch scratch{floats, floats + (activation == Activation::none ? 0 : M * O)};
  const View<const float, 2> dz = slope_and_sums(grad, activation, scratch, parallel);
  if (grad.dx) product(dz, in.w.view(), grad.dx, {.add = true}, parallel);
  if (grad.dw) product(dz.transposed(0, 1), in.x, grad.dw, {.add = true}, parallel);
}

}  // namespace heed::kernels
