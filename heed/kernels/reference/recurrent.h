// SPDX-License-Identifier: Apache-2.0
#pragma once
// The specification of kernels/recurrent.h: the same calls in double precision, one number after the other, written to
// be read. Row b T + t of `saved` is that of token t of row b.
#include "heed/base/export.h"
#include "heed/kernels/recurrent.h"

namespace heed::kernels::reference {

HEED_API void recurrent_forward(const RecurrentInputs<double>&, const RecurrentOutputs<double>&,
                                const RecurrentOptions&);
HEED_API void recurrent_backward(const RecurrentInputs<double>&, const RecurrentGradients<double>&,
                                 const RecurrentOptions&);
HEED_API void recurrent_trace(const RecurrentInputs<double>&, const RecurrentOutputs<double>&, const RecurrentOptions&,
                              const RecurrentTrace<double>&);

}  // namespace heed::kernels::reference
