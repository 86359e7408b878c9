// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/product.h"

#include <cblas.h>

#include <cassert>

#include "heed/kernels/product_tiles.h"

namespace heed::kernels {

namespace {

// A matrix as BLAS takes it: contiguous rows (or, transposed, columns), with the leading dimension `stride`.
struct Operand {
  const float* data;
  blasint stride;
  CBLAS_TRANSPOSE order;
};

bool has_contiguous_rows(const View<const float, 2>& view) {
  return view.shape(1) <= 1 || (view.stride(1) == 1 && (view.shape(0) <= 1 || view.stride(0) >= view.shape(1)));
}

// The stride of a single row may be anything; BLAS requires a leading dimension of at least a row all the same.
blasint row_stride(const View<const float, 2>& view) {
  const int64_t width = std::max<int64_t>(1, view.shape(1));
  assert(view.shape(0) <= 1 || view.stride(0) >= width);
  return static_cast<blasint>(std::max(view.stride(0), width));
}

Operand operand(const View<const float, 2>& view) {
  if (has_contiguous_rows(view)) return {view.data(), row_stride(view), CblasNoTrans};
  assert(has_contiguous_rows(view.transposed(0, 1)));
  return {view.data(), row_stride(view.transposed(0, 1)), CblasTrans};
}

blasint extent(int64_t n) { return static_cast<blasint>(n); }

// BLAS rejects an increment of 0 even for a vector of one element.
blasint increment(int64_t stride) { return stride == 0 ? 1 : extent(stride); }

// Threads are those of Parallel, not of BLAS.
void hold_to_one_thread() {
  static const bool held = (openblas_set_num_threads(1), true);
  (void)held;
}

// c [N] (=|+=) alpha a b for a vector a [K], given by its stride: faster than a product with one row.
void product_vector(const float* a, int64_t a_stride, const View<const float, 2>& b, float* c, int64_t c_stride,
                    const ProductOptions& options) {
  const Operand matrix = operand(b.transposed(0, 1));  // [N,K]
  const bool plain = matrix.order == CblasNoTrans;
  if (plain && (a_stride == 1 || b.shape(0) <= 1)) {
    return dot_rows({a, matrix.data, matrix.stride, b.shape(1), b.shape(0), c, c_stride, options.alpha, options.add});
  }
  cblas_sgemv(CblasRowMajor, matrix.order, extent(b.shape(plain ? 1 : 0)), extent(b.shape(plain ? 0 : 1)),
              options.alpha, matrix.data, matrix.stride, a, increment(a_stride), options.add ? 1.0f : 0.0f, c,
              increment(c_stride));
}

void product_of(const View<const float, 2>& a, const View<const float, 2>& b, const View<float, 2>& c,
                const ProductOptions& options) {
  const int64_t M = c.shape(0), N = c.shape(1), K = a.shape(1);
  if (M == 1) return product_vector(a.data(), a.stride(1), b, c.data(), c.stride(1), options);
  if (N == 1) return product_vector(b.data(), b.stride(0), a.transposed(0, 1), c.data(), c.stride(0), options);
  if (!has_contiguous_rows(c)) {
    return product_of(b.transposed(0, 1), a.transposed(0, 1), c.transposed(0, 1), options);
  }
  const Operand left = operand(a), right = operand(b);
  cblas_sgemm(CblasRowMajor, left.order, right.order, extent(M), extent(N), extent(K), options.alpha, left.data,
              left.stride, right.data, right.stride, options.add ? 1.0f : 0.0f, c.data(), row_stride(c));
}

// Initialises a tile that the product is accumulated into: y or 0, plus the bias.
void start_tile(const View<float, 2>& y, const View<const float, 1>& b, bool add) {
  for (int64_t m = 0; m < y.shape(0); ++m) {
    float* row = y.at(m);
    for (int64_t n = 0; n < y.shape(1); ++n) row[n] = (add ? row[n] : 0.0f) + (b ? b(n) : 0.0f);
  }
}

template <class T>
View<T, 2> part(const View<T, 2>& matrix, const Tile& tile) {
  return matrix.slice(0, tile.row, tile.rows).slice(1, tile.column, tile.columns);
}

// Columns of a task: four panels, which can be streamed side by side.
constexpr int64_t kGroup = 4 * Weight::kPanel;

}  // namespace

// BLAS packs both factors in each call, so tiles are large: smaller only where there would be too few for a few
// threads, and each is still worth a task.
Tiling product_tiling(int64_t M, int64_t N, int64_t K) {
  constexpr int64_t kEnough = 4;
  constexpr double kLeast = 2e6;  // multiplications
  Dims<2> most{std::clamp<int64_t>(M, 1, 512), std::clamp<int64_t>(N, 1, 1024)};
  const auto work = [&] {
    return static_cast<double>(most[0]) * static_cast<double>(most[1]) * static_cast<double>(K);
  };
  while (Tiling(M, N, most, 1).count() < kEnough && work() > 2 * kLeast && std::max(most[0], most[1]) > 1) {
    int64_t& larger = most[0] >= most[1] ? most[0] : most[1];
    larger = (larger + 1) / 2;
  }
  return Tiling(M, N, most, 1);
}

void product_tile(const View<const float, 2>& a, const View<const float, 2>& b, const View<float, 2>& c,
                  const ProductOptions& options, const Tile& tile) noexcept {
  hold_to_one_thread();
  const View<float, 2> result = part(c, tile);
  if (a.shape(1) == 0) {
    if (!options.add) start_tile(has_contiguous_rows(result) ? result : result.transposed(0, 1), {}, false);
    return;
  }
  product_of(a.slice(0, tile.row, tile.rows), b.slice(1, tile.column, tile.columns), result, options);
}

void product(const View<const float, 2>& a, const View<const float, 2>& b, const View<float, 2>& c,
             const ProductOptions& options, Parallel& parallel) noexcept {
  assert(a.shape(0) == c.shape(0) && b.shape(1) == c.shape(1) && a.shape(1) == b.shape(0));
  const Tiling tiling = product_tiling(c.shape(0), c.shape(1), a.shape(1));
  parallel.for_each(tiling.count(), [&](int64_t i, int) { product_tile(a, b, c, options, tiling[i]); });
}

namespace {

// BLAS takes weights in f32 that are not packed. It packs both factors in each call, which some tens of rows do not
// amortise: for those, pieces of w are packed into panels as they are needed.
bool through_blas(const Projection& call) {
  if (call.w.packed() || call.w.dtype() != DType::f32) return false;
  constexpr int64_t kFew = 16, kMany = 96;
  const int64_t M = call.y.shape(0);
  return M < kFew || M > kMany || call.w.inputs() < 64 || !has_contiguous_rows(call.w.view());
}

}  // namespace

Tiling project_tiling(const Projection& call) {
  const int64_t M = call.y.shape(0), O = call.y.shape(1), I = call.x.shape(1);
  if (through_blas(call)) return product_tiling(M, O, I);
  constexpr int64_t kRows = 96;  // of x, that stay in the L2 cache
  constexpr int64_t kLeast = 16384;
  const int64_t group = std::max<int64_t>(1, std::min(M, kRows) * I * kGroup);
  return Tiling(M, O, {kRows, kGroup * std::max<int64_t>(1, kLeast / group)}, kGroup);
}

void project_tile(const Projection& call, const Tile& tile) noexcept {
  if (!through_blas(call)) return project_panels(call, tile);
  const auto& [b, add] = call.options;
  if (b) start_tile(part(call.y, tile), b.slice(0, tile.column, tile.columns), add);
  product_tile(call.x, call.w.view().transposed(0, 1), call.y, {.add = add || b}, tile);
}

void project(const View<const float, 2>& x, const Weight& w, const View<float, 2>& y, const ProjectOptions& options,
             Parallel& parallel) noexcept {
  const Projection call{x, w, y, options};
  const Tiling tiling = project_tiling(call);
  parallel.for_each(tiling.count(), [&](int64_t i, int) { project_tile(call, tiling[i]); });
}

}  // namespace heed::kernels
