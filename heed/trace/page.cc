// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/page.h"

#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/page/shell.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {

std::string to_page(std::span<const Trace> traces) {
  if (traces.empty()) throw Error("page: there are 0 traces, expected at least one");
  std::string json = "[";
  for (const Trace& trace : traces) {
    if (&trace != &traces.front()) json += ",\n";
    json += to_json(trace);
  }
  return page::filled(page::trace_shell(), json + "]");
}

void save_page(const std::string& path, std::span<const Trace> traces) {
  const std::string page = to_page(traces);
  write_file_atomically(path, std::as_bytes(std::span(page)));
}

}  // namespace heed::trace
