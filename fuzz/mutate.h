// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inputs for a fuzz target, made from good ones by a few random changes: bits, bytes, pieces of other inputs, tokens of
// the formats, numbers at the edges of their types. The n-th input of a seed is always the same.
#include <cstdint>
#include <string>
#include <vector>

namespace heed::fuzz {

std::string mutated(const std::vector<std::string>& seeds, uint64_t seed, uint64_t run);

}  // namespace heed::fuzz
