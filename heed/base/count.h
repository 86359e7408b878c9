// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of things, as a sentence has them: "1 pair", "20,000 pairs".
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

// 29,000
inline std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t sign = number < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > 3 + sign; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

// The noun is one whose plural ends in s, unless it is given, too.
inline std::string counted(int64_t number, std::string_view noun, std::string_view plural = {}) {
  const std::string several = plural.empty() ? std::string(noun) + "s" : std::string(plural);
  return grouped(number) + " " + (number == 1 ? std::string(noun) : several);
}

}  // namespace heed
