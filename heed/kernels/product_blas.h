// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of its kernels OpenBLAS runs. It chooses by the name of the processor while it is loaded, and serves one that
// is newer than itself as if it were twenty years old: without AVX, at a fifth of the speed. The environment variable
// OPENBLAS_CORETYPE, if it is there before a program starts, chooses instead.
#include <string>

#include "heed/base/export.h"

namespace heed::kernels {

HEED_API std::string blas_core();  // "Haswell", "SkylakeX" ...

// What to set OPENBLAS_CORETYPE to for kernels that use what this processor has; nothing where they do already.
HEED_API std::string better_blas_core();

// The same for a given choice and processor.
struct ProcessorFeatures {
  bool avx2 = false, avx512 = false;
};
HEED_API std::string better_blas_core(const std::string& chosen, ProcessorFeatures);

}  // namespace heed::kernels
