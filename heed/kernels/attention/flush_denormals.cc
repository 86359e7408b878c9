// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/attention/flush_denormals.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace heed::kernels {

#if defined(__x86_64__)

FlushDenormals::FlushDenormals() noexcept : before_(_mm_getcsr()) { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON); }

// Of what the caller had, only this bit: flags that were raised meanwhile stay.
FlushDenormals::~FlushDenormals() {
  const unsigned bit = _MM_FLUSH_ZERO_MASK;
  _mm_setcsr((_mm_getcsr() & ~bit) | (before_ & bit));
}

#else

FlushDenormals::FlushDenormals() noexcept = default;
FlushDenormals::~FlushDenormals() = default;

#endif

}  // namespace heed::kernels
