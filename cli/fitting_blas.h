// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of OpenBLAS that fit the processor: see heed/kernels/product_blas.h.

namespace heed::cli {

// Where OpenBLAS took this processor for an old one, starts the program anew with OPENBLAS_CORETYPE set: there is no
// other way once it is loaded. Does nothing if the variable is set already, or if that fails: it is only slower then.
void restart_with_fitting_blas(char** argv);

}  // namespace heed::cli
