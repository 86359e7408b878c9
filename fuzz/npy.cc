// SPDX-License-Identifier: Apache-2.0
#include "heed/io/npy.h"

#include <string>

#include "fuzz/check.h"

namespace heed::fuzz {
namespace {

void read(std::span<const std::byte> file) {
  const io::NpyArray array = io::parse_npy(file, "input");
  require(io::byte_count(array.shape, array.type) == array.bytes.size(), "the bytes fit the shape");
  require(array.as_doubles().size() * io::size_of(array.type) == array.bytes.size(), "every element has a value");
}

// The same file with a length of the header that is right, which few changes leave: version 1, up to the first newline.
std::string framed(std::string_view file) {
  if (file.size() < 10) return std::string(file);
  const size_t header = file.substr(10).find('\n') + 1;
  std::string result(file);
  result[6] = 1;
  result[7] = 0;
  result[8] = static_cast<char>(header & 0xFF);
  result[9] = static_cast<char>(header >> 8 & 0xFF);
  return result;
}

}  // namespace
}  // namespace heed::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  heed::fuzz::try_to_read(input, heed::fuzz::read);
  heed::fuzz::try_to_read(heed::fuzz::framed(input), heed::fuzz::read);
  return 0;
}
