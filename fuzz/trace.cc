// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/trace.h"

#include <algorithm>
#include <string>

#include "fuzz/check.h"
#include "heed/trace/trace_file.h"

namespace heed::fuzz {
namespace {

void read(std::span<const std::byte> text) {
  const trace::Trace trace = trace::from_json(text_of(text), "input");
  for (const trace::Attention& one : trace.attn) {
    const auto pairs = one.heads.size() * static_cast<size_t>(one.q.size()) * static_cast<size_t>(one.k.size());
    if (one.weights) require(trace.values(one.weights).size() == pairs, "there is a weight for each pair");
  }
  const std::string written = trace::to_json(trace);
  require(trace::to_json(trace::from_json(written, "written")) == written, "what is written is read");
}

// The same file without check sums, which few changes leave right.
std::string unchecked(std::string_view file) {
  constexpr std::string_view kSum = "\"crc32\":";
  std::string result;
  while (true) {
    const size_t at = file.find(kSum);
    result += file.substr(0, at);
    if (at == file.npos) return result;
    file.remove_prefix(at + kSum.size());
    const size_t end = file.find_first_not_of("0123456789,");
    file.remove_prefix(std::min(end, file.size()));
  }
}

}  // namespace
}  // namespace heed::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  heed::fuzz::try_to_read(input, heed::fuzz::read);
  heed::fuzz::try_to_read(heed::fuzz::unchecked(input), heed::fuzz::read);
  return 0;
}
