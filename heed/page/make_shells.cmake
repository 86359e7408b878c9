# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=web/dist -DTO=shells.cc -P make_shells.cmake   the bytes of the pages as a source
function(bytes_of name to)
  file(READ ${FROM}/${name}.html bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")  # lines of 16
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(${to} "${bytes}" PARENT_SCOPE)
endfunction()
bytes_of(page page)
bytes_of(plot plot)
file(WRITE ${TO} "// Made from web/dist.
#include \"heed/page/shell.h\"

namespace heed::page {
namespace {

constexpr unsigned char kTrace[] = {
${page}};

constexpr unsigned char kReport[] = {
${plot}};

}  // namespace

std::string_view trace_shell() { return {reinterpret_cast<const char*>(kTrace), sizeof(kTrace)}; }
std::string_view report_shell() { return {reinterpret_cast<const char*>(kReport), sizeof(kReport)}; }

}  // namespace heed::page
")
