// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests: a program that links counted_heap.cc counts every operator new, how often and how many bytes are alive.
#include <cstdint>

namespace heed::counted_heap {

int64_t allocations();  // so far, by all threads
int64_t alive_bytes();
int64_t peak_bytes();  // the most that were alive at once since reset_peak()
void reset_peak();

}  // namespace heed::counted_heap
