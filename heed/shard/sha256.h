// SPDX-License-Identifier: Apache-2.0
#pragma once
// SHA-256 (FIPS 180-4) of bytes that come piece by piece: what the checksums of a run are made of, since anybody can
// compute them again with `sha256sum`. Not here: anything that keeps a secret.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heed::shard {

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  // Of all that was added, 64 hexadecimal digits. Nothing is added after that.
  std::string hex();

 private:
  static constexpr size_t kBlock = 64;
  void take_block(const std::byte* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> waiting_{};  // less than a block
  size_t waits_ = 0;
  uint64_t bytes_ = 0;
};

std::string sha256_of(std::string_view text);

}  // namespace heed::shard
