# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=page.html -DTO=page_shell.cc -P make_page_shell.cmake   a file's bytes as a source
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")  # lines of 16
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "// Made from web/dist/page.html.
#include \"heed/trace/page_shell.h\"

namespace heed::trace {
namespace {

constexpr unsigned char kBytes[] = {
${bytes}};

}  // namespace

std::string_view page_shell() { return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)}; }

}  // namespace heed::trace
")
