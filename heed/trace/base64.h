// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes as text (base64, RFC 4648, with padding), and their check sum (CRC-32 as zip and PNG have it). Internal.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::trace {

std::string to_base64(std::span<const std::byte> bytes);
// None where the text is not what to_base64 writes.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);
uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace heed::trace
