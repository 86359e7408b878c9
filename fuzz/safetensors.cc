// SPDX-License-Identifier: Apache-2.0
#include "heed/io/safetensors.h"

#include <algorithm>
#include <string>

#include "fuzz/check.h"

namespace heed::fuzz {
namespace {

void read(std::span<const std::byte> file) {
  const io::SafetensorsContent content = io::parse_safetensors(file, "input");
  size_t total = 0;
  for (const io::TensorEntry& tensor : content.tensors) {
    require(io::byte_count(tensor.shape, tensor.type) == tensor.bytes.size(), "the bytes fit the shape");
    require(tensor.bytes.empty() || (tensor.bytes.data() >= file.data() &&
                                     tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size()),
            "the bytes lie in the file");
    require(content.find(tensor.name) == &tensor, "a tensor is found by its name");
    total += tensor.bytes.size();
  }
  require(total + 8 <= file.size(), "no byte belongs to two tensors");
}

// The same file with a length of the header that is right, which few changes leave: up to the last bracket and its
// padding.
std::string framed(std::string_view file) {
  if (file.size() < 8) return std::string(file);
  const size_t bracket = file.rfind('}') == std::string_view::npos ? 8 : file.rfind('}') + 1;
  const size_t end = std::min(file.find_first_not_of(' ', bracket), file.size());
  uint64_t header = std::max<size_t>(end, 8) - 8;
  std::string result(file);
  for (size_t i = 0; i < 8; ++i, header >>= 8) result[i] = static_cast<char>(header & 0xFF);
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
