// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/base64.h"

#include <algorithm>
#include <array>

namespace heed::trace {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> value_table() {
  std::array<int8_t, 256> table{};
  table.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) table[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  return table;
}
constexpr auto kValues = value_table();

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr auto kCrc = crc_table();

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t n = 0; n < 3; ++n) {
      group = group << 8 | (i + n < bytes.size() ? std::to_integer<uint32_t>(bytes[i + n]) : 0u);
    }
    const size_t digits = std::min<size_t>(bytes.size() - i, 3) + 1;
    for (size_t n = 0; n < 4; ++n) text += n < digits ? kDigits[group >> (18 - 6 * n) & 63u] : '=';
  }
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t n = 0; n < 4; ++n) {
      const int value = n < digits ? kValues[static_cast<unsigned char>(text[i + n])] : 0;
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (size_t n = 0; n < 3; ++n) {
      const auto byte = static_cast<std::byte>(group >> (16 - 8 * n) & 255u);
      if (n + 1 < digits) {
        bytes.push_back(byte);
      } else if (byte != std::byte{0}) {
        return std::nullopt;  // bits that belong to no byte
      }
    }
  }
  return bytes;
}

uint32_t crc32(std::span<const std::byte> bytes) {
  uint32_t c = 0xFFFFFFFFu;
  for (const std::byte byte : bytes) c = kCrc[(c ^ std::to_integer<uint32_t>(byte)) & 255u] ^ (c >> 8);
  return c ^ 0xFFFFFFFFu;
}

}  // namespace heed::trace
