// SPDX-License-Identifier: Apache-2.0
#include "heed/kernels/product_blas.h"

#include <cblas.h>

#include <algorithm>
#include <array>

namespace heed::kernels {

namespace {

ProcessorFeatures this_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return {.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
          .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")};
#else
  return {};
#endif
}

}  // namespace

std::string blas_core() { return openblas_get_corename(); }

std::string better_blas_core() { return better_blas_core(blas_core(), this_processor()); }

std::string better_blas_core(const std::string& chosen, ProcessorFeatures has) {
  // Those that OpenBLAS chooses for processors that it knows to have AVX2. One of them may be meant where there is
  // AVX-512, too: that is its decision.
  constexpr std::array kKnown = {"Haswell", "Zen", "Excavator", "SkylakeX", "Cooperlake", "SapphireRapids"};
  const bool known = std::find(kKnown.begin(), kKnown.end(), chosen) != kKnown.end();
  if (known || !has.avx2) return {};
  return has.avx512 ? "SkylakeX" : "Haswell";
}

}  // namespace heed::kernels
