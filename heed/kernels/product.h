// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix products in f32, over weights that were packed once and over any two matrices, for a few rows (decoding, a
// step of a recurrence) and for many. A sum runs over the inner extent in order, one rounding a term: an element has
// the same bits for any number of threads, whatever the other rows and columns are, and whether its factors are packed
// or transposed. Not here: bias and activation (linear.h). Nothing is allocated and nothing can fail: shapes are the
// caller's to check.
#include "heed/base/export.h"
#include "heed/base/parallel.h"
#include "heed/base/view.h"
#include "heed/kernels/weight.h"

namespace heed::kernels {

struct ProductOptions {
  bool add{false};  // c += a b, not c = a b
};

// a [M,K]  b [K,N]  ->  c [M,N]
// Each view has a stride of 1 in one dimension and rows (or columns) that do not overlap; a transposed factor is a
// transposed view. c overlaps neither factor.
HEED_API void product(const View<const float, 2>& a, const View<const float, 2>& b, const View<float, 2>& c,
                      const ProductOptions&, Parallel&) noexcept;

struct ProjectOptions {
  View<const float, 1> b{};  // [O], contiguous, if there is one
  bool add{false};           // y += x w^T + b, not y = x w^T + b
};

// x [M,I]  w [O,I]  ->  y [M,O] = x w^T + b; x and y with contiguous rows.
HEED_API void project(const View<const float, 2>& x, const Weight& w, const View<float, 2>& y, const ProjectOptions&,
                      Parallel&) noexcept;

}  // namespace heed::kernels
