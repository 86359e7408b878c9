// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which stream of random numbers an item draws from: by its number in all of the input, so that it does not matter how
// the input was cut into calls and batches. Not for users of the library.
#include <cstdint>
#include <span>
#include <vector>

namespace heed::decode {

inline std::vector<int64_t> numbers_of(std::span<const size_t> items, int64_t first) {
  std::vector<int64_t> numbers;
  for (const size_t item : items) numbers.push_back(first + static_cast<int64_t>(item));
  return numbers;
}

}  // namespace heed::decode
