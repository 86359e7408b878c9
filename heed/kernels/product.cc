// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/product.h"

#include <cassert>

#include "heed/kernels/product_tiles.h"

namespace heed::kernels {

namespace {

// Columns of a task: four panels, which can be streamed side by side.
constexpr int64_t kGroup = 4 * Weight::kPanel;

// Over panels: rows of x that stay in the L2 cache, and enough columns to be worth a task.
Tiling panels_tiling(int64_t M, int64_t O, int64_t I) {
  constexpr int64_t kRows = 96, kLeast = 16384;
  const int64_t group = std::max<int64_t>(1, std::min(M, kRows) * I * kGroup);
  return {M, O, {kRows, kGroup * std::max<int64_t>(1, kLeast / group)}, kGroup};
}

// Over a matrix that each task packs for itself: tiles are large, and smaller only where there would be too few for a
// few threads, and each is still worth a task.
Tiling view_tiling(int64_t M, int64_t O, int64_t I, int64_t most_rows) {
  constexpr int64_t kEnough = 4, kMostColumns = 1024;
  constexpr double kLeast = 2e6;  // multiplications
  Dims<2> most{std::clamp<int64_t>(M, 1, most_rows), std::clamp<int64_t>(O, kGroup, kMostColumns)};
  const auto work = [&] {
    return static_cast<double>(most[0]) * static_cast<double>(most[1]) * static_cast<double>(I);
  };
  while (Tiling(M, O, most, kGroup).count() < kEnough && work() > 2 * kLeast && (most[0] > 1 || most[1] > kGroup)) {
    int64_t& larger = most[1] <= kGroup || (most[0] > 1 && most[0] >= most[1]) ? most[0] : most[1];
    larger = (larger + 1) / 2;
  }
  return {M, O, most, kGroup};
}

}  // namespace

Tiling project_tiling(const Projection& call) {
  const int64_t M = call.y.shape(0), O = call.y.shape(1), I = call.x.shape(1);
  if (call.w.packed()) return panels_tiling(M, O, I);
  constexpr int64_t kRows = 512;
  return view_tiling(M, O, I, has_contiguous_rows(call.x) ? kRows : kMostColumnRows);
}

void project(const View<const float, 2>& x, const Weight& w, const View<float, 2>& y, const ProjectOptions& options,
             Parallel& parallel) noexcept {
  const Projection call{x, w, y, options};
  const Tiling tiling = project_tiling(call);
  parallel.for_each(tiling.count(), [&](int64_t i, int) { project_tile(call, tiling[i]); });
}

void product(const View<const float, 2>& a, const View<const float, 2>& b, const View<float, 2>& c,
             const ProductOptions& options, Parallel& parallel) noexcept {
  assert(a.shape(0) == c.shape(0) && b.shape(1) == c.shape(1) && a.shape(1) == b.shape(0));
  // One column would be a panel of which fifteen sixteenths are empty; as a row it fills them.
  const bool column = c.shape(1) == 1 && c.shape(0) > 1 && c.stride(0) == 1;
  const bool swapped = column || !has_contiguous_rows(c);
  const View<const float, 2> x = swapped ? b.transposed(0, 1) : a, w = swapped ? a : b.transposed(0, 1);
  project(x, w, swapped ? c.transposed(0, 1) : c, {.add = options.add}, parallel);
}

}  // namespace heed::kernels
