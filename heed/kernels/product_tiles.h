// SPDX-License-Identifier: Apache-2.0
#pragma once
// How products are divided into tasks, and one task of each kind. Internal: linear.cc applies its activation to a tile
// while it is in the cache. The division depends on shapes alone, so results do not depend on threads.
#include <algorithm>
#include <cstdint>

#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/kernels/product.h"
#include "heed/kernels/weight.h"

namespace heed::kernels {

// A part of a matrix [M,N].
struct Tile {
  int64_t row, rows, column, columns;
};

// [M,N] in tiles of nearly equal sizes.
class Tiling {
 public:
  // Tiles of at most rows x columns, whose columns begin at multiples of `unit`.
  Tiling(int64_t M, int64_t N, const Dims<2>& most, int64_t unit)
      : M_(M), N_(N), unit_(unit), down_(pieces(M, most[0])), across_(pieces(N, std::max(most[1], unit))) {}

  int64_t count() const { return down_ * across_; }
  int64_t down() const { return down_; }  // tiles below each other: tile i is the (i mod down)-th of its column
  Tile operator[](int64_t i) const {
    const int64_t down = i % down_, across = i / down_;
    const int64_t row = M_ * down / down_, column = begin(across);
    return {row, M_ * (down + 1) / down_ - row, column, begin(across + 1) - column};
  }

 private:
  static int64_t pieces(int64_t extent, int64_t most) { return (extent + most - 1) / most; }
  int64_t begin(int64_t across) const {
    const int64_t units = pieces(N_, unit_);
    return std::min(N_, units * across / across_ * unit_);
  }

  int64_t M_, N_, unit_, down_, across_;
};

// The arguments of project(), whose x may have contiguous columns instead where w is not packed.
struct Projection {
  const View<const float, 2>& x;
  const Weight& w;
  const View<float, 2>& y;
  ProjectOptions options;
};

// Whether each row's elements are neighbours in memory.
inline bool has_contiguous_rows(const View<const float, 2>& view) { return view.shape(1) <= 1 || view.stride(1) == 1; }

// Rows of a tile whose x has contiguous columns: what is copied at a time stays in the L2 cache.
constexpr int64_t kMostColumnRows = 256;

Tiling project_tiling(const Projection&);
// The tile begins at a panel.
void project_tile(const Projection&, const Tile&) noexcept;

// 16 rows of contiguous inputs, `stride` apart, as a panel, which is aligned as a Workspace is.
void pack_whole_panel(const float* rows, int64_t stride, int64_t inputs, float* panel) noexcept;

}  // namespace heed::kernels
