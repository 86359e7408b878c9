// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/embedding.h: the same calls in double precision, written to be read.
#include "heed/base/export.h"
#include "heed/base/view.h"
#include "heed/kernels/embedding.h"

namespace heed::kernels::reference {

HEED_API void embedding_forward(View<const double, 2> table, View<const int32_t, 1> ids, double factor,
                                View<double, 2> y);
HEED_API void embedding_backward(View<const int32_t, 1> ids, View<const double, 2> dy, double factor,
                                 View<double, 2> dtable);

}  // namespace heed::kernels::reference
