// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/reference/embedding.h"

#include <cassert>

namespace heed::kernels::reference {

void embedding_forward(View<const double, 2> table, View<const int32_t, 1> ids, double factor, View<double, 2> y) {
  for (int64_t n = 0; n < ids.shape(0); ++n) {
    assert(ids(n) >= 0 && ids(n) < table.shape(0));
    for (int64_t e = 0; e < table.shape(1); ++e) y(n, e) = factor * table(ids(n), e);
  }
}

void embedding_backward(View<const int32_t, 1> ids, View<const double, 2> dy, double factor, View<double, 2> dtable) {
  for (int64_t n = 0; n < ids.shape(0); ++n) {
    assert(ids(n) >= 0 && ids(n) < dtable.shape(0));
    for (int64_t e = 0; e < dtable.shape(1); ++e) dtable(ids(n), e) += factor * dy(n, e);
  }
}

}  // namespace heed::kernels::reference
