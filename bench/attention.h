// SPDX-License-Identifier: Apache-2.0
#pragma once
// `heed bench attention`: how close attention comes to what the machine can do, and to attention without fusion.
#include "bench/options.h"

namespace heed::bench {

// Prints a table to standard output as it goes. Throws Error, before anything is measured, where no row is left, the
// file cannot be written or the machine has no such instruction set.
void bench_attention(const BenchOptions&);

}  // namespace heed::bench
