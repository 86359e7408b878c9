// SPDX-License-Identifier: Apache-2.0
#include "heed/trace/page.h"

#include "heed/base/error.h"
#include "heed/base/file.h"
#include "heed/trace/page_shell.h"
#include "heed/trace/trace_file.h"

namespace heed::trace {
namespace {

constexpr std::string_view kPlace = "@HEED_TRACES@";  // of the traces in the shell, once

// JSON has '<' in strings alone. Written as an escape, no text of a user can end the script that it stands in.
void append_escaped(std::string& page, const std::string& json) {
  for (const char c : json) {
    if (c == '<') {
      page += "\\u003c";
    } else {
      page += c;
    }
  }
}

}  // namespace

std::string to_page(std::span<const Trace> traces) {
  if (traces.empty()) throw Error("page: there are 0 traces, expected at least one");
  const std::string_view shell = page_shell();
  const size_t place = shell.find(kPlace);
  if (place == shell.npos) throw Error("page: the shell has no place for traces, expected " + std::string(kPlace));
  std::string page(shell.substr(0, place));
  page += "[";
  for (const Trace& trace : traces) {
    if (&trace != &traces.front()) page += ",\n";
    append_escaped(page, to_json(trace));
  }
  page += "]";
  page += shell.substr(place + kPlace.size());
  return page;
}

void save_page(const std::string& path, std::span<const Trace> traces) {
  const std::string page = to_page(traces);
  write_file_atomically(path, std::as_bytes(std::span(page)));
}

}  // namespace heed::trace
