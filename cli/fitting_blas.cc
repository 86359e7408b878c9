// SPDX-License-Identifier: Apache-2.0
#include "cli/fitting_blas.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "heed/kernels/product_blas.h"

namespace heed::cli {

void restart_with_fitting_blas(char** argv) {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (std::getenv(kVariable)) return;
  const std::string core = kernels::better_blas_core();
  if (core.empty() || setenv(kVariable, core.c_str(), 1) != 0) return;
  execv("/proc/self/exe", argv);
}

}  // namespace heed::cli
