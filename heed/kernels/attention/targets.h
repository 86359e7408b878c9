// SPDX-License-Identifier: Apache-2.0
#pragma once
// The SIMD instruction sets that this build has kernels for and this machine can run. Kernels dispatch to the best one
// by themselves; tests and benchmarks choose.
#include <string>
#include <vector>

#include "heed/base/export.h"

namespace heed::kernels {

HEED_API std::vector<std::string> simd_targets();  // best first, e.g. {"AVX3", "AVX2", "SSE4", "SCALAR"}
HEED_API std::string simd_target();                // the one in use
// Not while a kernel runs. An empty name means the best again; an unknown name throws Error.
HEED_API void use_simd_target(const std::string& name);

}  // namespace heed::kernels
