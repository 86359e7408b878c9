// SPDX-License-Identifier: Apache-2.0
#pragma once
// web/dist/page.html as the build found it: make_page_shell.cmake writes its bytes into a source.
#include <string_view>

namespace heed::trace {

std::string_view page_shell();

}  // namespace heed::trace
