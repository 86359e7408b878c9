// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the fuzz targets share. A target is LLVMFuzzerTestOneInput in a file of its own, so that it also links with
// libFuzzer; the driver here is for compilers that have none.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "heed/base/error.h"

namespace heed::fuzz {

// Inputs that a reader took for good: a run that has none of them tested only the first checks.
inline uint64_t accepted = 0;

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Calls a reader with bytes of its own, so that a read past their end is seen. Good or not, it must give a result or an
// Error that can be shown: one line, not long.
template <class Read>
void try_to_read(std::string_view input, Read read) {
  const std::string copy(input);
  try {
    read(std::as_bytes(std::span(copy)));
    ++accepted;
  } catch (const Error& error) {
    const std::string_view text = error.what();
    require(text.size() < 4000, "an error is short");
    for (const char c : text) require(c >= ' ' && c <= '~', "an error is one line of printable text");
  }
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace heed::fuzz

// libFuzzer's name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);  // NOLINT(readability-identifier-naming)
