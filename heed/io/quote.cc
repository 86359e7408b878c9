// SPDX-License-Identifier: Apache-2.0
#include "heed/io/quote.h"

namespace heed::io {

std::string quote(std::string_view text) {
  constexpr size_t kLongest = 80;
  constexpr char kHex[] = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return result + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace heed::io
